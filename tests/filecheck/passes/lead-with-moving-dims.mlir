// RUN: irkit-opt %s -p lead-with-moving-dims | filecheck %s
// RUN: irkit-opt %s -p lead-with-moving-dims --check-semantics > /dev/null

// Columns that are read and written: both arrays are turned, one of them back.
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.*]] = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<8x9xf64>) -> tensor<9x8xf64>
// CHECK:         %[[START:.*]] = graph.transpose %b {permutation = array<i64: 1, 0>}
// CHECK:         %[[R:.*]] = scf.for %i = %c0 to %c9 step %c1 iter_args(%{{.*}} = %[[START]]) -> (tensor<9x8xf64>) {
// CHECK-NEXT:      %{{.*}} = tensor.extract_slice %[[T]][%i, 0] [1, 8] [1, 1] : tensor<9x8xf64> to tensor<1x8xf64>
// CHECK:           %y = graph.neg %{{.*}} : (tensor<8xf64>) -> tensor<8xf64>
// CHECK:           tensor.insert_slice %{{.*}} into %{{.*}}[%i, 0] [1, 8] [1, 1] : tensor<1x8xf64> into tensor<9x8xf64>
// CHECK:         graph.transpose %[[R]] {permutation = array<i64: 1, 0>} : (tensor<9x8xf64>) -> tensor<8x9xf64>
func.func @main(%a: tensor<8x9xf64>, %b: tensor<8x9xf64>) -> tensor<8x9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %b) -> (tensor<8x9xf64>) {
    %column = tensor.extract_slice %a[0, %i] [8, 1] [1, 1] : tensor<8x9xf64> to tensor<8xf64>
    %y = graph.neg %column : (tensor<8xf64>) -> tensor<8xf64>
    %z = graph.reshape %y {shape = array<i64: 8, 1>} : (tensor<8xf64>) -> tensor<8x1xf64>
    %new = tensor.insert_slice %z into %x[0, %i] [8, 1] [1, 1] : tensor<8x1xf64> into tensor<8x9xf64>
    scf.yield %new : tensor<8x9xf64>
  }
  func.return %r : tensor<8x9xf64>
}

// Rows lie side by side: nothing is turned.
// CHECK-LABEL: func.func @rows
// CHECK-NOT:     graph.transpose
func.func @rows(%a: tensor<8x9xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %w = arith.constant dense<0.0> : tensor<9xf64>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %w) -> (tensor<9xf64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 9] [1, 1] : tensor<8x9xf64> to tensor<9xf64>
    %y = graph.add %row, %x : (tensor<9xf64>, tensor<9xf64>) -> tensor<9xf64>
    scf.yield %y : tensor<9xf64>
  }
  func.return %r : tensor<9xf64>
}

// An iteration needs all of the array as it is: it stays.
// CHECK-LABEL: func.func @whole
// CHECK-NOT:     graph.transpose
func.func @whole(%a: tensor<8x9xf64>) -> tensor<8x9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) -> (tensor<8x9xf64>) {
    %column = tensor.extract_slice %x[0, %i] [8, 1] [1, 1] : tensor<8x9xf64> to tensor<8x1xf64>
    %y = graph.add %x, %column : (tensor<8x9xf64>, tensor<8x1xf64>) -> tensor<8x9xf64>
    scf.yield %y : tensor<8x9xf64>
  }
  func.return %r : tensor<8x9xf64>
}
