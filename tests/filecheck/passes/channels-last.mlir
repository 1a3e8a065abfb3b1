// RUN: irkit-opt %s -p 'convert-graph-to-tensor,fuse-elementwise,put-channels-last{device="h200" images=2},canonicalize' | filecheck %s
// RUN: irkit-opt %s -p 'convert-graph-to-tensor,put-channels-last{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=FEW
// RUN: irkit-opt %s -p 'convert-graph-to-tensor,put-channels-last{device="cpu"},put-channels-last' | filecheck %s --check-prefix=CPU

// The input is copied once, with a channel of zeros and its padding; the filters are turned here. What follows
// has no other order, and what is returned is copied back.
// CHECK-LABEL: func.func @main
// CHECK:       tensor.pad %x low[0, 0, 1, 1] high[0, 1, 1, 1]
// CHECK:       %[[X:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]{{.*}} : tensor<2x10x10x4xf32>)
// CHECK:       %[[Y:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, (d1 + d4), (d2 + d5), d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>]{{.*}} ins(%[[X]], %{{.*}} : tensor<2x10x10x4xf32>, tensor<8x3x3x4xf32>)
// CHECK:       %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<2x8x8x8xf32>)
// CHECK:       %[[R:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, {{.*}} ins(%[[Z]] : tensor<2x8x8x8xf32>)
// CHECK:       func.return %[[R]] : tensor<2x8x8x8xf32>

// FEW: put-channels-last/PutChannelsLast: 'func.func': 2 images are few
// CPU-NOT: tensor<8x3x3x4xf32>
func.func @main(%x: tensor<2x3x8x8xf32>) -> tensor<2x8x8x8xf32> {
  %w = arith.constant dense<0.5> : tensor<8x3x3x3xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<2x8x8x8xf32>
  %1 = graph.relu %0 : (tensor<2x8x8x8xf32>) -> tensor<2x8x8x8xf32>
  func.return %1 : tensor<2x8x8x8xf32>
}

// A slice follows, and so does what stands for each of several elements beside one another.
// CHECK-LABEL: func.func @sliced
// CHECK:       %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 1, 0, 0] [2, 4, 8, 8] [1, 2, 1, 1] : tensor<2x8x8x8xf32> to tensor<2x4x8x8xf32>
// CHECK:       linalg.generic {{.*}} outs(%{{.*}} : tensor<2x4x2x8x8xf32>)
// CHECK:       tensor.collapse_shape {{.*}} into tensor<2x8x8x8xf32>
func.func @sliced(%x: tensor<2x4x8x8xf32>, %c: tensor<2x1xf32>) -> tensor<2x8x8x8xf32> {
  %w = arith.constant dense<0.5> : tensor<8x4x3x3xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<8x4x3x3xf32>) -> tensor<2x8x8x8xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 0, 1, 0>, sizes = array<i64: 2, 8, 4, 8>, strides = array<i64: 1, 1, 2, 1>} : (tensor<2x8x8x8xf32>) -> tensor<2x8x4x8xf32>
  %2 = graph.reshape %1 {shape = array<i64: 2, 8, 4, 1, 8>} : (tensor<2x8x4x8xf32>) -> tensor<2x8x4x1x8xf32>
  %3 = graph.mul %2, %c : (tensor<2x8x4x1x8xf32>, tensor<2x1xf32>) -> tensor<2x8x4x2x8xf32>
  %4 = graph.reshape %3 {shape = array<i64: 2, 8, 8, 8>} : (tensor<2x8x4x2x8xf32>) -> tensor<2x8x8x8xf32>
  %5 = graph.relu %4 : (tensor<2x8x8x8xf32>) -> tensor<2x8x8x8xf32>
  func.return %5 : tensor<2x8x8x8xf32>
}
