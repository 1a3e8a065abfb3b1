// RUN: not irkit-opt %s -p 'form-roperators,partition-rtasks{device=test4}' 2>&1 | filecheck %s
// RUN: not irkit-opt %s -p 'form-roperators,partition-rtasks{device=h200}' 2>&1 | filecheck %s

// Sums that are rounded to 16 bits at every step are not what rKernels compute.
// CHECK: error: pass 'partition-rtasks' failed: @{{.*}}: sums of f16: of f32, which `widen-half` makes them
func.func @main(%x: tensor<4x8xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%p: f16, %o: f16):
    %s = arith.addf %o, %p : f16
    linalg.yield %s : f16
  } -> tensor<4xf16>
  return %y : tensor<4xf16>
}
