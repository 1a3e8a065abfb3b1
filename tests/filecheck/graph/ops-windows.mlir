// Windows, normalisation and reductions: custom and generic form, both ways.
// RUN: irkit-opt %s | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @conv_1d(
// CHECK-NEXT:    %y = graph.conv %x, %w {strides = array<i64: 2>, pads = array<i64: 1, 0>, dilations = array<i64: 2>, group = 2 : i64} : (tensor<?x4x9xf32>, tensor<6x2x3xf32>) -> tensor<?x6x3xf32>
// GENERIC:       %y = "graph.conv"(%x, %w) <{strides = array<i64: 2>, pads = array<i64: 1, 0>, dilations = array<i64: 2>, group = 2 : i64}> : (tensor<?x4x9xf32>, tensor<6x2x3xf32>) -> tensor<?x6x3xf32>
func.func @conv_1d(%x: tensor<?x4x9xf32>, %w: tensor<6x2x3xf32>) {
  %y = graph.conv %x, %w {strides = array<i64: 2>, pads = array<i64: 1, 0>, dilations = array<i64: 2>, group = 2 : i64} : (tensor<?x4x9xf32>, tensor<6x2x3xf32>) -> tensor<?x6x3xf32>
  func.return
}

// CHECK-LABEL: func.func @conv_3d(
// CHECK-NEXT:    %y = graph.conv %x, %w, %b {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>, group = 1 : i64} : (tensor<1x1x4x4x4xf32>, tensor<2x1x2x2x2xf32>, tensor<2xf32>) -> tensor<1x2x3x3x3xf32>
// GENERIC:       %y = "graph.conv"(%x, %w, %b) <{strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>, group = 1 : i64}> : (tensor<1x1x4x4x4xf32>, tensor<2x1x2x2x2xf32>, tensor<2xf32>) -> tensor<1x2x3x3x3xf32>
func.func @conv_3d(%x: tensor<1x1x4x4x4xf32>, %w: tensor<2x1x2x2x2xf32>, %b: tensor<2xf32>) {
  %y = graph.conv %x, %w, %b {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>, group = 1 : i64} : (tensor<1x1x4x4x4xf32>, tensor<2x1x2x2x2xf32>, tensor<2xf32>) -> tensor<1x2x3x3x3xf32>
  func.return
}

// CHECK-LABEL: func.func @conv_transpose_as_a_product(
// CHECK-NEXT:    %y = graph.conv_transpose %x, %w {{.*}}form = "product"
func.func @conv_transpose_as_a_product(%x: tensor<1x3x8xf32>, %w: tensor<3x4x3xf32>) {
  %y = graph.conv_transpose %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 1>, form = "product"} : (tensor<1x3x8xf32>, tensor<3x4x3xf32>) -> tensor<1x4x18xf32>
  func.return
}

// CHECK-LABEL: func.func @conv_transpose(
// CHECK-NEXT:    %y = graph.conv_transpose %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 1>} : (tensor<1x3x8xf32>, tensor<3x4x3xf32>) -> tensor<1x4x18xf32>
// GENERIC:       %y = "graph.conv_transpose"(%x, %w) <{strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 1>}> : (tensor<1x3x8xf32>, tensor<3x4x3xf32>) -> tensor<1x4x18xf32>
func.func @conv_transpose(%x: tensor<1x3x8xf32>, %w: tensor<3x4x3xf32>) {
  %y = graph.conv_transpose %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 1>} : (tensor<1x3x8xf32>, tensor<3x4x3xf32>) -> tensor<1x4x18xf32>
  func.return
}

// CHECK-LABEL: func.func @average_pool_ceil(
// CHECK-NEXT:    %y = graph.average_pool %x {kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 2>, ceil_mode = true, count_include_pad = true} : (tensor<1x4x7xf32>) -> tensor<1x4x3xf32>
// GENERIC:       %y = "graph.average_pool"(%x) <{kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 2>, ceil_mode = true, count_include_pad = true}> : (tensor<1x4x7xf32>) -> tensor<1x4x3xf32>
func.func @average_pool_ceil(%x: tensor<1x4x7xf32>) {
  %y = graph.average_pool %x {kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 2>, ceil_mode = true, count_include_pad = true} : (tensor<1x4x7xf32>) -> tensor<1x4x3xf32>
  func.return
}

// CHECK-LABEL: func.func @lp_pool(
// CHECK-NEXT:    %y = graph.lp_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, p = 2 : i64} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
// GENERIC:       %y = "graph.lp_pool"(%x) <{kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, p = 2 : i64}> : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
func.func @lp_pool(%x: tensor<1x4x8x8xf32>) {
  %y = graph.lp_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, p = 2 : i64} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @max_pool_indices(
// CHECK-NEXT:    %y = graph.max_pool_indices %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, column_major = false} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xi64>
// GENERIC:       %y = "graph.max_pool_indices"(%x) <{kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, column_major = false}> : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xi64>
func.func @max_pool_indices(%x: tensor<1x4x8x8xf32>) {
  %y = graph.max_pool_indices %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, column_major = false} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xi64>
  func.return
}

// CHECK-LABEL: func.func @lrn(
// CHECK-NEXT:    %y = graph.lrn %x {size = 5 : i64, alpha = 1.000000e-04 : f64, beta = 7.500000e-01 : f64, bias = 1.000000e+00 : f64} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
// GENERIC:       %y = "graph.lrn"(%x) <{size = 5 : i64, alpha = 1.000000e-04 : f64, beta = 7.500000e-01 : f64, bias = 1.000000e+00 : f64}> : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
func.func @lrn(%x: tensor<1x8x4x4xf32>) {
  %y = graph.lrn %x {size = 5 : i64, alpha = 1.0e-4 : f64, beta = 0.75 : f64, bias = 1.0 : f64} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @cumsum(
// CHECK-NEXT:    %y = graph.cumsum %x {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<?x10xf32>) -> tensor<?x10xf32>
// GENERIC:       %y = "graph.cumsum"(%x) <{axis = 1 : i64, exclusive = false, reverse = true}> : (tensor<?x10xf32>) -> tensor<?x10xf32>
func.func @cumsum(%x: tensor<?x10xf32>) {
  %y = graph.cumsum %x {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<?x10xf32>) -> tensor<?x10xf32>
  func.return
}

// CHECK-LABEL: func.func @top_k(
// CHECK-NEXT:    %y, %i = graph.top_k %x {k = 3 : i64, axis = 1 : i64, largest = true} : (tensor<?x10xf32>) -> (tensor<?x3xf32>, tensor<?x3xi64>)
// GENERIC:       %y, %i = "graph.top_k"(%x) <{k = 3 : i64, axis = 1 : i64, largest = true}> : (tensor<?x10xf32>) -> (tensor<?x3xf32>, tensor<?x3xi64>)
func.func @top_k(%x: tensor<?x10xf32>) {
  %y, %i = graph.top_k %x {k = 3 : i64, axis = 1 : i64, largest = true} : (tensor<?x10xf32>) -> (tensor<?x3xf32>, tensor<?x3xi64>)
  func.return
}
