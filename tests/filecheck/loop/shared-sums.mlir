// RUN: irkit-opt %s --to=schedule --device=cpu2 --check-semantics | filecheck %s

// Both parts of the sums on vEUs of their own, then their sum.

// CHECK: rkernel = "generated.nest", grid = array<i64: 2, 1, 1>
// CHECK: tensor.expand_shape %a
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; bind k to veu in 2; split m by 2; reorder mo, k, mi, n; unroll mi; unroll n; cache B">} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  func.return %c : tensor<4x6xf32>
}
