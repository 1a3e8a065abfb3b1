// RUN: not irkit-opt %s -p cut-sums 2>&1 | filecheck %s

// Sums that vEUs share are over whole dimensions, that the index reads by itself.

// CHECK: schedule:1:24: 'bind' of 'k' to vEUs, which 'A' does not read by itself, from its first to its last
func.func @windows(%a: tensor<9xf32>, %k: tensor<4xf32>) -> tensor<6xf32> {
  %y = graph.expression %a, %k {text = "O(i) +=! A(i + k) * K(k)", schedule = #loop.schedule<"for i, k of A, K; bind k to veu in 2">} : (tensor<9xf32>, tensor<4xf32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}
