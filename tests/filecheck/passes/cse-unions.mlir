// RUN: irkit-opt %s -p cse,dce --split-input-file | filecheck %s

// Two members of a union that begin with the same scaler: it is computed once, and so is what both make of it.
func.func @shared(%x: tensor<?x2xf64>) -> tensor<?x6xf64> {
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %0 = graph.sub %x, %mean : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  %1 = graph.abs %0 : (tensor<?x2xf64>) -> tensor<?x2xf64>
  %again = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %2 = graph.sub %x, %again : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  %3 = graph.abs %2 : (tensor<?x2xf64>) -> tensor<?x2xf64>
  %4 = graph.exp %2 : (tensor<?x2xf64>) -> tensor<?x2xf64>
  %5 = graph.concat(%1, %3, %4) {axis = 1 : i64} : (tensor<?x2xf64>, tensor<?x2xf64>, tensor<?x2xf64>) -> tensor<?x6xf64>
  func.return %5 : tensor<?x6xf64>
}
// CHECK-LABEL: func.func @shared
// CHECK-NEXT:    %[[M:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK-NEXT:    %[[S:.*]] = graph.sub %x, %[[M]]
// CHECK-NEXT:    %[[A:.*]] = graph.abs %[[S]]
// CHECK-NEXT:    %[[E:.*]] = graph.exp %[[S]]
// CHECK-NEXT:    %[[C:.*]] = graph.concat(%[[A]], %[[A]], %[[E]])
// CHECK-NEXT:    func.return %[[C]]

// -----

// By another mean it is another.
func.func @apart(%x: tensor<?x2xf64>) -> tensor<?x4xf64> {
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %0 = graph.sub %x, %mean : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  %other = arith.constant dense<[1.0, 2.5]> : tensor<2xf64>
  %1 = graph.sub %x, %other : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  %2 = graph.concat(%0, %1) {axis = 1 : i64} : (tensor<?x2xf64>, tensor<?x2xf64>) -> tensor<?x4xf64>
  func.return %2 : tensor<?x4xf64>
}
// CHECK-LABEL: func.func @apart
// CHECK:         graph.sub
// CHECK:         graph.sub
