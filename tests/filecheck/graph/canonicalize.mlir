// RUN: irkit-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @reshape_chain
func.func @reshape_chain(%x: tensor<2x3x4xf32>) -> tensor<24xf32> {
  // CHECK-NEXT: %[[Y:.*]] = graph.reshape %x {shape = array<i64: 24>} : (tensor<2x3x4xf32>) -> tensor<24xf32>
  // CHECK-NEXT: func.return %[[Y]]
  %0 = graph.reshape %x {shape = array<i64: 6, 4>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = graph.reshape %0 {shape = array<i64: 4, 6>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %2 = graph.reshape %1 {shape = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  func.return %2 : tensor<24xf32>
}

// CHECK-LABEL: func.func @reshape_there_and_back
func.func @reshape_there_and_back(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  // CHECK-NEXT: func.return %x
  %0 = graph.reshape %x {shape = array<i64: -9223372036854775808, 12>} : (tensor<?x3x4xf32>) -> tensor<?x12xf32>
  %1 = graph.reshape %0 {shape = array<i64: -9223372036854775808, 3, 4>} : (tensor<?x12xf32>) -> tensor<?x3x4xf32>
  func.return %1 : tensor<?x3x4xf32>
}

// CHECK-LABEL: func.func @identities
func.func @identities(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: func.return %x
  %0 = graph.cast %x {to = f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = graph.expand %0 {shape = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = graph.slice %2 {offsets = array<i64: 0, 0>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = graph.concat(%3) {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %4 : tensor<2x3xf32>
}

// A slice that takes everything backwards is no identity.
// CHECK-LABEL: func.func @reversed
func.func @reversed(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: graph.slice
  %0 = graph.slice %x {offsets = array<i64: 2>, sizes = array<i64: 3>, strides = array<i64: -1>} : (tensor<3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}

// A square transposition has the operand's type but moves elements.
// CHECK-LABEL: func.func @square
func.func @square(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  // CHECK-NEXT: graph.transpose
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %0 : tensor<3x3xf32>
}

// CHECK-LABEL: func.func @transpose_twice
func.func @transpose_twice(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  // CHECK-NEXT: %[[Y:.*]] = graph.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  // CHECK-NEXT: func.return %[[Y]]
  %0 = graph.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<3x2x4xf32>) -> tensor<3x4x2xf32>
  func.return %1 : tensor<3x4x2xf32>
}

// CHECK-LABEL: func.func @transpose_of_unit_dimensions
func.func @transpose_of_unit_dimensions(%x: tensor<5x1x3xf32>) -> tensor<1x5x3xf32> {
  // CHECK-NEXT: %[[Y:.*]] = graph.reshape %x {shape = array<i64: 1, 5, 3>} : (tensor<5x1x3xf32>) -> tensor<1x5x3xf32>
  // CHECK-NEXT: func.return %[[Y]]
  %0 = graph.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<5x1x3xf32>) -> tensor<1x5x3xf32>
  func.return %0 : tensor<1x5x3xf32>
}

// A dynamic batch must stay first in a reshape.
// CHECK-LABEL: func.func @transpose_of_the_batch
func.func @transpose_of_the_batch(%x: tensor<?x1xf32>) -> tensor<1x?xf32> {
  // CHECK-NEXT: graph.transpose
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<?x1xf32>) -> tensor<1x?xf32>
  func.return %0 : tensor<1x?xf32>
}

// CHECK-LABEL: func.func @slice_of_slice
func.func @slice_of_slice(%x: tensor<?x20xf32>) -> tensor<?x3xf32> {
  // CHECK-NEXT: %[[Y:.*]] = graph.slice %x {offsets = array<i64: 0, 15>, sizes = array<i64: -9223372036854775808, 3>, strides = array<i64: 1, -4>} : (tensor<?x20xf32>) -> tensor<?x3xf32>
  // CHECK-NEXT: func.return %[[Y]]
  %0 = graph.slice %x {offsets = array<i64: 0, 3>, sizes = array<i64: -9223372036854775808, 8>, strides = array<i64: 1, 2>} : (tensor<?x20xf32>) -> tensor<?x8xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 6>, sizes = array<i64: -9223372036854775808, 3>, strides = array<i64: 1, -2>} : (tensor<?x8xf32>) -> tensor<?x3xf32>
  func.return %1 : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @slice_of_concat
func.func @slice_of_concat(%x: tensor<?x4xf32>, %y: tensor<?x6xf32>) -> tensor<?x2xf32> {
  // CHECK-NEXT: %[[Y:.*]] = graph.slice %y {offsets = array<i64: 0, 5>, sizes = array<i64: -9223372036854775808, 2>, strides = array<i64: 1, -5>} : (tensor<?x6xf32>) -> tensor<?x2xf32>
  // CHECK-NEXT: func.return %[[Y]]
  %0 = graph.concat(%x, %y) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x6xf32>) -> tensor<?x10xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 9>, sizes = array<i64: -9223372036854775808, 2>, strides = array<i64: 1, -5>} : (tensor<?x10xf32>) -> tensor<?x2xf32>
  func.return %1 : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @slice_of_one_operand
func.func @slice_of_one_operand(%x: tensor<4x2xf32>, %y: tensor<6x2xf32>) -> tensor<6x2xf32> {
  // CHECK-NEXT: func.return %y
  %0 = graph.concat(%x, %y) {axis = 0 : i64} : (tensor<4x2xf32>, tensor<6x2xf32>) -> tensor<10x2xf32>
  %1 = graph.slice %0 {offsets = array<i64: 4, 0>, sizes = array<i64: 6, 2>, strides = array<i64: 1, 1>} : (tensor<10x2xf32>) -> tensor<6x2xf32>
  func.return %1 : tensor<6x2xf32>
}

// CHECK-LABEL: func.func @slice_across_operands
func.func @slice_across_operands(%x: tensor<4xf32>, %y: tensor<6xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: graph.concat
  // CHECK-NEXT: graph.slice
  %0 = graph.concat(%x, %y) {axis = 0 : i64} : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
  %1 = graph.slice %0 {offsets = array<i64: 3>, sizes = array<i64: 2>, strides = array<i64: 1>} : (tensor<10xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @slice_of_reshaped_concat
func.func @slice_of_reshaped_concat(%a: tensor<1x2x4xf32>, %b: tensor<2x2x4xf32>) -> tensor<1x4xf32> {
  // CHECK-NEXT: %[[B:.*]] = graph.reshape %b {shape = array<i64: 4, 4>} : (tensor<2x2x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.slice %[[B]] {offsets = array<i64: 3, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<1x4xf32>
  // CHECK-NEXT: func.return %[[Y]]
  %0 = graph.concat(%a, %b) {axis = 0 : i64} : (tensor<1x2x4xf32>, tensor<2x2x4xf32>) -> tensor<3x2x4xf32>
  %1 = graph.reshape %0 {shape = array<i64: 6, 4>} : (tensor<3x2x4xf32>) -> tensor<6x4xf32>
  %2 = graph.slice %1 {offsets = array<i64: 5, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  func.return %2 : tensor<1x4xf32>
}

// Joined along an inner axis, the operands are interleaved in row-major order.
// CHECK-LABEL: func.func @interleaved
func.func @interleaved(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: graph.concat
  // CHECK-NEXT: graph.reshape
  // CHECK-NEXT: graph.slice
  %0 = graph.concat(%a, %b) {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %1 = graph.reshape %0 {shape = array<i64: 16>} : (tensor<2x8xf32>) -> tensor<16xf32>
  %2 = graph.slice %1 {offsets = array<i64: 4>, sizes = array<i64: 4>, strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// Rows of the reshaped tensor do not end where operands do.
// CHECK-LABEL: func.func @other_blocks
func.func @other_blocks(%a: tensor<3xf32>, %b: tensor<5xf32>) -> tensor<1x4xf32> {
  // CHECK-NEXT: graph.concat
  // CHECK-NEXT: graph.reshape
  // CHECK-NEXT: graph.slice
  %0 = graph.concat(%a, %b) {axis = 0 : i64} : (tensor<3xf32>, tensor<5xf32>) -> tensor<8xf32>
  %1 = graph.reshape %0 {shape = array<i64: 2, 4>} : (tensor<8xf32>) -> tensor<2x4xf32>
  %2 = graph.slice %1 {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  func.return %2 : tensor<1x4xf32>
}

// What repeats one element repeats it in any shape.
// CHECK-LABEL: func.func @reshape_of_repeated
func.func @reshape_of_repeated(%x: tensor<f32>, %r: tensor<6xf32>) -> (tensor<2x3xf32>, tensor<12xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = graph.expand %x {shape = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
  // CHECK-NEXT: %[[R:.*]] = graph.expand %r {shape = array<i64: 2, 6>}
  // CHECK-NEXT: %[[S:.*]] = graph.reshape %[[R]]
  // CHECK-NEXT: func.return %[[Y]], %[[S]]
  %0 = graph.expand %x {shape = array<i64: 6>} : (tensor<f32>) -> tensor<6xf32>
  %1 = graph.reshape %0 {shape = array<i64: 2, 3>} : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = graph.expand %r {shape = array<i64: 2, 6>} : (tensor<6xf32>) -> tensor<2x6xf32>
  %3 = graph.reshape %2 {shape = array<i64: 12>} : (tensor<2x6xf32>) -> tensor<12xf32>
  func.return %1, %3 : tensor<2x3xf32>, tensor<12xf32>
}

// CHECK-LABEL: func.func @where_of_one
func.func @where_of_one(%c: tensor<3x4xi1>, %x: tensor<3x4xf32>, %r: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = graph.where %c, %r, %r
  // CHECK-NEXT: func.return %x, %[[Y]]
  %0 = graph.where %c, %x, %x : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = graph.where %c, %r, %r : (tensor<3x4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  func.return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}

// CHECK-LABEL: func.func @where_of_where
func.func @where_of_where(%c: tensor<4xi1>, %d: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = graph.where %c, %x, %z
  // CHECK-NEXT: %[[B:.*]] = graph.where %c, %z, %y
  // CHECK-NEXT: %[[I:.*]] = graph.where %d, %x, %y
  // CHECK-NEXT: %[[C:.*]] = graph.where %c, %[[I]], %z
  // CHECK-NEXT: func.return %[[A]], %[[B]], %[[C]]
  %0 = graph.where %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.where %c, %0, %z : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = graph.where %c, %z, %0 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = graph.where %d, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = graph.where %c, %3, %z : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A value that is repeated by the choice keeps its shape by it.
// CHECK-LABEL: func.func @where_of_smaller
func.func @where_of_smaller(%c: tensor<1xi1>, %x: tensor<1xf32>, %y: tensor<4xf32>, %z: tensor<1xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: graph.where %c, %x, %y
  // CHECK-NEXT: graph.where
  %0 = graph.where %c, %x, %y : (tensor<1xi1>, tensor<1xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.where %c, %0, %z : (tensor<1xi1>, tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @and_of_same
func.func @and_of_same(%c: tensor<4xi1>, %x: tensor<4xi1>, %y: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  // CHECK-NEXT: %[[A:.*]] = graph.and %x, %c
  // CHECK-NEXT: %[[B:.*]] = graph.and %c, %x
  // CHECK-NEXT: %[[C:.*]] = graph.and %y, %[[A]]
  // CHECK-NEXT: func.return %[[A]], %[[B]], %[[C]]
  %0 = graph.and %x, %c : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %1 = graph.and %c, %0 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %2 = graph.where %c, %x, %y : (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %3 = graph.and %2, %c : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %4 = graph.and %y, %0 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  func.return %1, %3, %4 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}
