// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics --split-input-file | filecheck %s

// Dimensions with the same elements are regrouped; 4x6 has none in common with 3x8.
func.func @main(%x: tensor<4x6xf32>) -> (tensor<2x2x6xf32>, tensor<24xf32>, tensor<3x8xf32>) {
  %a = graph.reshape %x {shape = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %b = graph.reshape %x {shape = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %c = graph.reshape %x {shape = array<i64: 3, 8>} : (tensor<4x6xf32>) -> tensor<3x8xf32>
  return %a, %b, %c : tensor<2x2x6xf32>, tensor<24xf32>, tensor<3x8xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<4x6xf32>)
// CHECK-NEXT:    %a = tensor.expand_shape %x {{\[\[}}0 : i64, 1 : i64], [2 : i64]] output_shape [2, 2, 6] : tensor<4x6xf32> into tensor<2x2x6xf32>
// CHECK-NEXT:    %b = tensor.collapse_shape %x {{\[\[}}0 : i64, 1 : i64]] : tensor<4x6xf32> into tensor<24xf32>
// CHECK-NEXT:    [[flat:%.*]] = tensor.collapse_shape %x
// CHECK-NEXT:    %c = tensor.expand_shape [[flat]] {{.*}} into tensor<3x8xf32>

// -----

// The batch is taken whole.
func.func @main(%x: tensor<?x8xf32>, %y: tensor<?x2xf32>) -> tensor<?x5xf32> {
  %a = graph.slice %x {offsets = array<i64: 0, 2>, sizes = array<i64: -9223372036854775808, 3>, strides = array<i64: 1, 2>} : (tensor<?x8xf32>) -> tensor<?x3xf32>
  %b = graph.concat(%a, %y) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
  return %b : tensor<?x5xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x8xf32>
// CHECK:         [[n:%.*]] = tensor.dim %x
// CHECK-NEXT:    %a = tensor.extract_slice %x[0, 2] [[[n]], 3] [1, 2] : tensor<?x8xf32> to tensor<?x3xf32>
// CHECK-NEXT:    %b = tensor.concat dim(1) %a, %y

// -----

// What runs backward is gathered.
func.func @main(%x: tensor<8xf32>) -> tensor<3xf32> {
  %y = graph.slice %x {offsets = array<i64: 7>, sizes = array<i64: 3>, strides = array<i64: -2>} : (tensor<8xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<8xf32>)
// CHECK-NEXT:    [[i:%.*]] = arith.constant dense<[7, 5, 3]> : tensor<3xi64>
// CHECK-NEXT:    %y = te.gather %x, [[i]] {axis = 0 : i64}

// -----

func.func @main(%x: tensor<4x1xf32>) -> (tensor<1x4xf32>, tensor<4x8xf32>) {
  %a = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x1xf32>) -> tensor<1x4xf32>
  %b = graph.expand %x {shape = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  return %a, %b : tensor<1x4xf32>, tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<4x1xf32>)
// CHECK:         %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK:         %b = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>]
