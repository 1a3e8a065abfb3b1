// RUN: irkit-opt %s -p 'share-convolutions{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p 'share-convolutions{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'share-convolutions{device="cpu2"}' | filecheck %s --check-prefix=CPU

// A group for each part of the channels, the sum of the parts, and the bias behind it.
// CHECK-LABEL: func.func @few_pixels
// CHECK: %[[P:.*]] = graph.conv %x, %{{[^ ,]*}} {irkit.precision = "tf32", {{.*}}group = [[N:[0-9]+]] : i64}
// CHECK: %[[S:.*]] = graph.reshape %[[P]] {shape = array<i64: 1, [[N]], 128, 7, 7>}
// CHECK: %[[Y:.*]] = graph.reduce %[[S]] {kind = "sum", axes = array<i64: 1>, keepdims = false} : {{.*}} -> tensor<1x128x7x7xf32>
// CHECK: %[[B:.*]] = graph.reshape %{{.*}} {shape = array<i64: 128, 1, 1>}
// CHECK: %[[Z:.*]] = graph.add %[[Y]], %[[B]]
// CHECK: func.return %[[Z]]
// CPU-LABEL: func.func @few_pixels
// CPU: group = 1 : i64
// CPU-NOT: graph.reduce
func.func @few_pixels(%x: tensor<1x512x7x7xf32>) -> tensor<1x128x7x7xf32> {
  %w = arith.constant dense<0.5> : tensor<128x512x3x3xf32>
  %b = arith.constant dense<1.5> : tensor<128xf32>
  %y = graph.conv %x, %w, %b {irkit.precision = "tf32", strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x512x7x7xf32>, tensor<128x512x3x3xf32>, tensor<128xf32>) -> tensor<1x128x7x7xf32>
  func.return %y : tensor<1x128x7x7xf32>
}

// Parts of each group.
// CHECK-LABEL: func.func @groups
// CHECK: graph.reduce {{.*}} axes = array<i64: 2>
// CHECK: graph.reshape {{.*}} -> tensor<1x128x4x4xf32>
func.func @groups(%x: tensor<1x1024x4x4xf32>) -> tensor<1x128x4x4xf32> {
  %w = arith.constant dense<0.5> : tensor<128x512x3x3xf32>
  %y = graph.conv %x, %w {irkit.precision = "bf16", strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 2 : i64}
    : (tensor<1x1024x4x4xf32>, tensor<128x512x3x3xf32>) -> tensor<1x128x4x4xf32>
  func.return %y : tensor<1x128x4x4xf32>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: graph.reduce
// MISSED: it is of float32's own precision
// MISSED: its filters are no constant
// MISSED: its filters are stored in other elements
// MISSED: its results, or too few terms, leave no vEU without work
// MISSED: its results, or too few terms, leave no vEU without work
func.func @left_alone(%x: tensor<1x512x7x7xf32>, %v: tensor<128x512x3x3xf32>, %z: tensor<1x64x56x56xf32>)
    -> (tensor<1x128x7x7xf32>, tensor<1x128x7x7xf32>, tensor<1x128x7x7xf32>, tensor<1x256x56x56xf32>, tensor<1x8x7x7xf32>) {
  %w = arith.constant dense<0.5> : tensor<128x512x3x3xf32>
  %strict = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x512x7x7xf32>, tensor<128x512x3x3xf32>) -> tensor<1x128x7x7xf32>
  %given = graph.conv %x, %v {irkit.precision = "tf32", strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x512x7x7xf32>, tensor<128x512x3x3xf32>) -> tensor<1x128x7x7xf32>
  %h = arith.constant dense<0.5> : tensor<128x512x1x1xbf16>
  %c = graph.cast %h {to = f32} : (tensor<128x512x1x1xbf16>) -> tensor<128x512x1x1xf32>
  %halves = graph.conv %x, %c {irkit.precision = "bf16", strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x512x7x7xf32>, tensor<128x512x1x1xf32>) -> tensor<1x128x7x7xf32>
  %w1 = arith.constant dense<0.5> : tensor<256x64x1x1xf32>
  %many = graph.conv %z, %w1 {irkit.precision = "tf32", strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x64x56x56xf32>, tensor<256x64x1x1xf32>) -> tensor<1x256x56x56xf32>
  %w2 = arith.constant dense<0.5> : tensor<8x512x1x1xf32>
  %short = graph.conv %x, %w2 {irkit.precision = "tf32", strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x512x7x7xf32>, tensor<8x512x1x1xf32>) -> tensor<1x8x7x7xf32>
  func.return %strict, %given, %halves, %many, %short : tensor<1x128x7x7xf32>, tensor<1x128x7x7xf32>, tensor<1x128x7x7xf32>, tensor<1x256x56x56xf32>, tensor<1x8x7x7xf32>
}
