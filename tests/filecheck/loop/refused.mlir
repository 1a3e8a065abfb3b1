// RUN: not irkit-opt %s --to=task --device=cpu2 2>&1 | filecheck %s

// What only the operands say: the lanes of B lie apart.

// CHECK: 'vectorize' of 'ni': elements of 'B' are 4 apart; cache it
func.func @main(%a: tensor<6x4xf32>, %b: tensor<8x4xf32>) -> tensor<6x8xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(n, k)", schedule = #loop.schedule<"for m, n, k of A, B; split n by 8; reorder no, m, k, ni; vectorize ni">} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  func.return %c : tensor<6x8xf32>
}
