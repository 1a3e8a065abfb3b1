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
