// RUN: irkit-opt %s -p 'partition-rtasks{device=test4}' | filecheck %s
// RUN: irkit-opt %s -p 'partition-rtasks{device=h200}' | filecheck %s

// f32 outside, bf16 inside.
// CHECK: task.roperator @inner({{.*}}rkernel = "map.
task.roperator @inner(%a : tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.truncf %p : f32 to bf16
    %t = arith.extf %s : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = task.launch @inner(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
