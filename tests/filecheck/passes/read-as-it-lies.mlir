// RUN: irkit-opt %s -p read-as-it-lies | filecheck %s
// RUN: irkit-opt %s -p read-as-it-lies --check-semantics > /dev/null
// RUN: irkit-opt %s -p 'read-as-it-lies{device="h100"}' | filecheck %s --check-prefix=GPU

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[R:.*]] = graph.reshape %x {shape = array<i64: 1, 4>}
// CHECK-NEXT:    %[[Y:.*]] = graph.matmul %[[R]], %a : (tensor<1x4xf64>, tensor<4x5xf64>)
// CHECK-NEXT:    graph.reshape %[[Y]] {shape = array<i64: 5, 1>}
// GPU:           graph.matmul %t, %x
func.func @main(%a: tensor<4x5xf64>, %x: tensor<4x1xf64>) -> tensor<5x1xf64> {
  %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x5xf64>) -> tensor<5x4xf64>
  %y = graph.matmul %t, %x : (tensor<5x4xf64>, tensor<4x1xf64>) -> tensor<5x1xf64>
  func.return %y : tensor<5x1xf64>
}

// Two columns are no row.
// CHECK-LABEL: func.func @two
// CHECK:         graph.matmul %t, %x
func.func @two(%a: tensor<4x5xf64>, %x: tensor<4x2xf64>) -> tensor<5x2xf64> {
  %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x5xf64>) -> tensor<5x4xf64>
  %y = graph.matmul %t, %x : (tensor<5x4xf64>, tensor<4x2xf64>) -> tensor<5x2xf64>
  func.return %y : tensor<5x2xf64>
}
