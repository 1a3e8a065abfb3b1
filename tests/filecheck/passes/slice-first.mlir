// RUN: irkit-opt %s -p slice-first | filecheck %s
// RUN: irkit-opt %s -p slice-first --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// Through two ops; a constant's columns are a constant, a column that broadcasts stays whole.
// CHECK-LABEL: func.func @gates
// CHECK-NOT: tensor<2x6xf32>, tensor<2x6xf32>
// CHECK: %[[P0:.*]] = graph.slice %p {offsets = array<i64: 0, 0>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>}
// CHECK: %[[Q0:.*]] = graph.slice %q {offsets = array<i64: 0, 0>, sizes = array<i64: 2, 3>
// CHECK: %[[S0:.*]] = graph.add %[[P0]], %[[Q0]] : (tensor<2x3xf32>, tensor<2x3xf32>)
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
// CHECK: graph.mul %{{.*}}, %column : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
// CHECK: arith.constant dense<[4.000000e+00, 5.000000e+00, 6.000000e+00]> : tensor<3xf32>
// CHECK: graph.mul %{{.*}}, %column : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
func.func @gates(%h: tensor<2x4xf32>, %q: tensor<2x6xf32>, %column: tensor<2x1xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %w = arith.constant dense<0.5> : tensor<4x6xf32>
  %b = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %p = graph.matmul %h, %w : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  %0 = graph.add %p, %q : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %1 = graph.add %0, %b : (tensor<2x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  %2 = graph.mul %1, %column : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %3 = graph.slice %2 {offsets = array<i64: 0, 0>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x3xf32>
  %4 = graph.slice %2 {offsets = array<i64: 0, 3>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x3xf32>
  func.return %3, %4 : tensor<2x3xf32>, tensor<2x3xf32>
}

// Left alone: columns that overlap, what is read whole too, what is behind no product, many rows.
// CHECK-LABEL: func.func @whole
// CHECK: graph.relu %{{.*}} : (tensor<1x6xf32>)
// CHECK: graph.tanh %{{.*}} : (tensor<1x6xf32>)
// CHECK: graph.exp %q : (tensor<1x6xf32>)
// CHECK: graph.relu %{{.*}} : (tensor<9x6xf32>)
// MISSED-DAG: parts of it are read twice
// MISSED-DAG: something else reads what it is a part of
// MISSED-DAG: no product is before what it is a part of
// MISSED-DAG: what it is a part of is no matrix of at most 8 rows
func.func @whole(%h: tensor<1x4xf32>, %q: tensor<1x6xf32>, %m: tensor<9x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x6xf32>, tensor<1x4xf32>, tensor<9x3xf32>) {
  %w = arith.constant dense<0.5> : tensor<4x6xf32>
  %p = graph.matmul %h, %w : (tensor<1x4xf32>, tensor<4x6xf32>) -> tensor<1x6xf32>
  %0 = graph.relu %p : (tensor<1x6xf32>) -> tensor<1x6xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<1x6xf32>) -> tensor<1x4xf32>
  %2 = graph.slice %0 {offsets = array<i64: 0, 2>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<1x6xf32>) -> tensor<1x4xf32>
  %3 = graph.tanh %p : (tensor<1x6xf32>) -> tensor<1x6xf32>
  %4 = graph.slice %3 {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<1x6xf32>) -> tensor<1x4xf32>
  %5 = graph.exp %q : (tensor<1x6xf32>) -> tensor<1x6xf32>
  %6 = graph.slice %5 {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<1x6xf32>) -> tensor<1x4xf32>
  %n = graph.matmul %m, %w : (tensor<9x4xf32>, tensor<4x6xf32>) -> tensor<9x6xf32>
  %7 = graph.relu %n : (tensor<9x6xf32>) -> tensor<9x6xf32>
  %8 = graph.slice %7 {offsets = array<i64: 0, 0>, sizes = array<i64: 9, 3>, strides = array<i64: 1, 1>} : (tensor<9x6xf32>) -> tensor<9x3xf32>
  func.return %1, %2, %4, %3, %6, %8 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x6xf32>, tensor<1x4xf32>, tensor<9x3xf32>
}
