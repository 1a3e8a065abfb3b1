// RUN: irkit-opt %s -p 'select-transposed-form{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p 'select-transposed-form{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'select-transposed-form{device="cpu2"}' | filecheck %s --check-prefix=CPU

// CHECK-LABEL: func.func @many_channels
// CHECK: graph.conv_transpose {{.*}} form = "product"
// CPU-LABEL: func.func @many_channels
// CPU-NOT: form
func.func @many_channels(%x: tensor<1x64x16x16xf32>, %w: tensor<64x32x4x4xf32>) -> tensor<1x32x34x34xf32> {
  %y = graph.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64, output_padding = array<i64: 0, 0>}
    : (tensor<1x64x16x16xf32>, tensor<64x32x4x4xf32>) -> tensor<1x32x34x34xf32>
  func.return %y : tensor<1x32x34x34xf32>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: form
// MISSED: its stride is 1: it is a convolution
// MISSED: its taps stand apart
// MISSED: 16-bit floats would be rounded before they are summed
// MISSED: its groups have 4 channels each
// MISSED: each element would be a sum of 32 in memory
func.func @left_alone(%x: tensor<1x64x16xf32>, %h: tensor<1x64x16xf16>, %w: tensor<64x32x4xf32>, %v: tensor<64x32x4xf16>, %l: tensor<64x32x64xf32>)
    -> (tensor<1x32x19xf32>, tensor<1x32x37xf32>, tensor<1x32x34xf16>, tensor<1x512x34xf32>, tensor<1x32x94xf32>) {
  %one = graph.conv_transpose %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x64x16xf32>, tensor<64x32x4xf32>) -> tensor<1x32x19xf32>
  %apart = graph.conv_transpose %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 2>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x64x16xf32>, tensor<64x32x4xf32>) -> tensor<1x32x37xf32>
  %half = graph.conv_transpose %h, %v {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x64x16xf16>, tensor<64x32x4xf16>) -> tensor<1x32x34xf16>
  %few = graph.conv_transpose %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 16 : i64, output_padding = array<i64: 0>}
    : (tensor<1x64x16xf32>, tensor<64x32x4xf32>) -> tensor<1x512x34xf32>
  %long = graph.conv_transpose %x, %l {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x64x16xf32>, tensor<64x32x64xf32>) -> tensor<1x32x94xf32>
  func.return %one, %apart, %half, %few, %long : tensor<1x32x19xf32>, tensor<1x32x37xf32>, tensor<1x32x34xf16>, tensor<1x512x34xf32>, tensor<1x32x94xf32>
}
