// RUN: irkit-opt %s -p 'form-roperators,partition-rtasks{device=cpu2}' --check-semantics | filecheck %s
// An op of a body that nothing uses, as a lowering leaves it for `dce`, does not read the destination.

// CHECK:     task.roperator @map_0
// CHECK-NOT: arith.negf
// CHECK:     func.func
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %dead = arith.negf %o : f32
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
