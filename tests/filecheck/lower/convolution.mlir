// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics --split-input-file | filecheck %s

func.func @main(%x: tensor<?x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<?x4x4x6xf32> {
  %y = graph.conv %x, %w, %b {strides = array<i64: 2, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 2>, group = 1 : i64}
    : (tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<?x4x4x6xf32>
  return %y : tensor<?x4x4x6xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x3x8x8xf32>
// CHECK:         [[pad:%.*]] = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
// CHECK:           [[zero:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      tensor.yield [[zero]] : f32
// CHECK-NEXT:    } : tensor<?x3x8x8xf32> to tensor<?x3x10x10xf32>
// CHECK:         [[init:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1)>,
// CHECK:         %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, ((d2 * 2) + d5), (d3 + (d6 * 2)))>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins([[pad]], %w : tensor<?x3x10x10xf32>, tensor<4x3x3x3xf32>) outs([[init]]

// -----

// Without padding there is no tensor.pad; groups are one more parallel loop.
func.func @main(%x: tensor<1x4x5x5xf32>, %w: tensor<6x2x3x3xf32>) -> tensor<1x6x3x3xf32> {
  %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 2 : i64}
    : (tensor<1x4x5x5xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x3x3xf32>
  return %y : tensor<1x6x3x3xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x4x5x5xf32>
// CHECK-NOT:     tensor.pad
// CHECK:         tensor.expand_shape %x {{.*}} into tensor<1x2x2x5x5xf32>
// CHECK-NEXT:    tensor.expand_shape %w {{.*}} into tensor<2x3x2x3x3xf32>
// CHECK:         [[sum:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, (d3 + d6), (d4 + d7))>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>]
// CHECK:         %y = tensor.collapse_shape [[sum]] {{.*}} into tensor<1x6x3x3xf32>

// -----

// The second input only says how large a window is.
func.func @main(%x: tensor<1x4x7x7xf32>) -> tensor<1x4x4x4xf32> {
  %y = graph.max_pool %x {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>}
    : (tensor<1x4x7x7xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x4x7x7xf32>)
// CHECK:         [[pad:%.*]] = tensor.pad %x
// CHECK:           arith.constant 0xff800000 : f32
// CHECK:         [[window:%.*]] = tensor.empty() : tensor<3x3xf32>
// CHECK:         %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, ((d2 * 2) + d4), ((d3 * 2) + d5))>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>, {{.*}} ins([[pad]], [[window]]
// CHECK:           arith.maximumf

// -----

// Where padding does not count, windows at the edge have fewer elements.
func.func @main(%x: tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32> {
  %y = graph.average_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, count_include_pad = false}
    : (tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32>
  return %y : tensor<1x1x3x3xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x1x2x2xf32>)
// CHECK:         [[count:%.*]] = arith.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00, 1.000000e+00], [2.000000e+00, 4.000000e+00, 2.000000e+00], [1.000000e+00, 2.000000e+00, 1.000000e+00]]> : tensor<3x3xf32>
// CHECK:         %y = linalg.generic {{.*}} ins({{%.*}}, [[count]] : tensor<1x1x3x3xf32>, tensor<3x3xf32>)
// CHECK:           arith.divf

// -----

// By phases of the stride: one contraction with a loop over them, then side by side. Filters are packed.
func.func @main(%x: tensor<1x2x3xf32>, %b: tensor<1xf32>) -> tensor<1x1x6xf32> {
  %w = arith.constant dense<[[[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0]]]> : tensor<2x1x4xf32>
  %y = graph.conv_transpose %x, %w, %b {strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x2x3xf32>, tensor<2x1x4xf32>, tensor<1xf32>) -> tensor<1x1x6xf32>
  return %y : tensor<1x1x6xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x2x3xf32>
// CHECK:         [[w:%.*]] = arith.constant {{.*}} : tensor<2x1x2x2xf32>
// CHECK-NOT:     tensor.expand_shape %x
// CHECK:         [[pad:%.*]] = tensor.pad %x low[0, 0, 1] high[0, 0, 1]
// CHECK:         [[sum:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, ((d3 + d5) + d1))>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d2, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>]{{.*}} ins([[pad]], [[w]] :
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, {{.*}} ins([[sum]] :
// CHECK:         %y = tensor.collapse_shape {{.*}} into tensor<1x1x6xf32>

// -----

// Three taps of stride two: phases differ, so a convolution of stride 1 over elements that stand two apart.
func.func @main(%x: tensor<1x2x3xf32>, %w: tensor<2x1x3xf32>) -> tensor<1x1x7xf32> {
  %y = graph.conv_transpose %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x2x3xf32>, tensor<2x1x3xf32>) -> tensor<1x1x7xf32>
  return %y : tensor<1x1x7xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x2x3xf32>
// CHECK:         tensor.expand_shape %x {{.*}} into tensor<1x2x3x1xf32>
// CHECK:         tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 0, 0, 1]
// CHECK:         tensor.collapse_shape {{.*}} into tensor<1x2x6xf32>
// CHECK:         [[pad:%.*]] = tensor.pad {{.*}} low[0, 0, 2] high[0, 0, 1]
// CHECK:         [[w:%.*]] = tensor.collapse_shape {{.*}} into tensor<1x2x3xf32>
// CHECK:         %y = linalg.generic {{.*}} ins([[pad]], [[w]] :

// -----

// As a product: a row for each of three taps (the fourth is zeros behind it), a column for each element; then
// element 2q + r is the sum of taps r and r + 2 of elements q and q - 1.
func.func @main(%x: tensor<1x2x3xf32>, %w: tensor<2x1x3xf32>) -> tensor<1x1x7xf32> {
  %y = graph.conv_transpose %x, %w {form = "product", strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x2x3xf32>, tensor<2x1x3xf32>) -> tensor<1x1x7xf32>
  return %y : tensor<1x1x7xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x2x3xf32>
// CHECK:         [[w:%.*]] = tensor.collapse_shape {{.*}} into tensor<2x3xf32>
// CHECK:         [[products:%.*]] = linalg.generic {{.*}} ins(%x, [[w]] : tensor<1x2x3xf32>, tensor<2x3xf32>)
// CHECK:         tensor.pad {{.*}} low[0, 0, 0, 1] high[0, 0, 1, 1]
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, ({{.*}}), ({{.*}}))>
// CHECK:           arith.addf
// CHECK:         tensor.collapse_shape {{.*}} into tensor<1x1x8xf32>
// CHECK:         tensor.extract_slice {{.*}} to tensor<1x1x7xf32>

// -----

// Of each window the least position that holds its maximum and is no padding.
func.func @main(%x: tensor<1x1x4xf32>) -> tensor<1x1x3xi64> {
  %y = graph.max_pool_indices %x {kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 1, 1>, column_major = false}
    : (tensor<1x1x4xf32>) -> tensor<1x1x3xi64>
  return %y : tensor<1x1x3xi64>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x1x4xf32>)
// CHECK:         [[most:%.*]] = linalg.generic
// CHECK:           arith.maximumf
// CHECK:         %y = linalg.generic {{.*}}[[most]]
// CHECK:           arith.minsi
