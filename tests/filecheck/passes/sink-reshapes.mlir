// RUN: irkit-opt %s -p convert-graph-to-tensor,sink-reshapes,canonicalize | filecheck %s
// RUN: irkit-opt %s --to=schedule --device=test4 | filecheck %s --check-prefix=ONE

// Two filters a group: loops over groups and filters, in the residual as g * 2 + m.
// CHECK-LABEL: func.func @main
// CHECK:       %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
// CHECK:       %[[Y:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, ((d1 * 2) + d2), d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>]{{.*}} ins(%[[SUM]], %r : tensor<1x3x2x8x8xf32>, tensor<1x6x8x8xf32>)
// CHECK:       %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<1x3x2x8x8xf32>)
// CHECK:       %[[W:.*]] = tensor.collapse_shape %[[Z]]
// CHECK-NEXT:  func.return %[[W]] : tensor<1x6x8x8xf32>

// One rOperator does it all.
// ONE-COUNT-1: task.append
// ONE-NOT:     task.append
func.func @main(%x: tensor<1x3x8x8xf32>, %r: tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32> {
  %w = arith.constant dense<0.5> : tensor<6x1x3x3xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 3 : i64} : (tensor<1x3x8x8xf32>, tensor<6x1x3x3xf32>) -> tensor<1x6x8x8xf32>
  %1 = graph.add %0, %r : (tensor<1x6x8x8xf32>, tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32>
  %2 = graph.relu %1 : (tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32>
  func.return %2 : tensor<1x6x8x8xf32>
}
