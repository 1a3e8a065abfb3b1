// RUN: irkit-opt %s -p 'place-in-group{rank=1 size=2}' | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = arith.constant dense<1> : tensor<i64>
// CHECK-NEXT: %[[N:.*]] = arith.constant dense<2> : tensor<i64>
// CHECK-NEXT: %[[S:.*]] = dist.all_reduce %x {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[M:.*]] = graph.div %[[S]], %[[C]] : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %[[H:.*]] = dist.all_reduce %x {kind = "max"} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: func.return %[[R]], %[[N]], %[[M]], %[[H]]
func.func @main(%x: tensor<8xf32>) -> (tensor<i64>, tensor<i64>, tensor<8xf32>, tensor<8xf32>) {
  %r = dist.rank : tensor<i64>
  %n = dist.size : tensor<i64>
  %m = dist.all_reduce %x {kind = "mean"} : (tensor<8xf32>) -> tensor<8xf32>
  %h = dist.all_reduce %x {kind = "max"} : (tensor<8xf32>) -> tensor<8xf32>
  func.return %r, %n, %m, %h : tensor<i64>, tensor<i64>, tensor<8xf32>, tensor<8xf32>
}
