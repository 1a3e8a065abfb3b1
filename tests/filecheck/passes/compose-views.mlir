// RUN: irkit-opt %s -p convert-graph-to-tensor,compose-views | filecheck %s
// RUN: irkit-opt %s --to=schedule --device=test4 | filecheck %s --check-prefix=ONE

// Queries, keys and values are parts of one value, heads in its columns; so is the result.
// CHECK-LABEL: func.func @main
// CHECK-DAG:   %[[Q:.*]] = tensor.extract_slice %x[0, 0] [10, 32] [1, 1]
// CHECK-DAG:   %[[K:.*]] = tensor.extract_slice %x[0, 32] [10, 32] [1, 1]
// CHECK-DAG:   %[[V:.*]] = tensor.extract_slice %x[0, 64] [10, 32] [1, 1]
// CHECK-DAG:   linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, ((d0 * 8) + d2))>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]{{.*}} ins(%[[Q]] :
// CHECK-DAG:   linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, ((d0 * 8) + d2))>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]{{.*}} ins(%[[K]] :
// CHECK-DAG:   linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, ((d0 * 8) + d2))>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]{{.*}} ins(%[[V]] :
// CHECK:       te.attention {{.*}} permutation = array<i64: 1, 0, 2>
// CHECK-NOT:   linalg.generic
// CHECK:       func.return

// ONE-COUNT-1: task.append
// ONE-NOT:     task.append
// ONE:         func.func @carries
func.func @main(%x: tensor<10x96xf32>) -> tensor<10x32xf32> {
  %0 = graph.reshape %x {shape = array<i64: 10, 3, 4, 8>} : (tensor<10x96xf32>) -> tensor<10x3x4x8xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 2, 0, 3>} : (tensor<10x3x4x8xf32>) -> tensor<3x4x10x8xf32>
  %q1 = graph.slice %1 {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 4, 10, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<3x4x10x8xf32>) -> tensor<1x4x10x8xf32>
  %q = graph.reshape %q1 {shape = array<i64: 4, 10, 8>} : (tensor<1x4x10x8xf32>) -> tensor<4x10x8xf32>
  %k1 = graph.slice %1 {offsets = array<i64: 1, 0, 0, 0>, sizes = array<i64: 1, 4, 10, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<3x4x10x8xf32>) -> tensor<1x4x10x8xf32>
  %k = graph.reshape %k1 {shape = array<i64: 4, 10, 8>} : (tensor<1x4x10x8xf32>) -> tensor<4x10x8xf32>
  %v1 = graph.slice %1 {offsets = array<i64: 2, 0, 0, 0>, sizes = array<i64: 1, 4, 10, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<3x4x10x8xf32>) -> tensor<1x4x10x8xf32>
  %v = graph.reshape %v1 {shape = array<i64: 4, 10, 8>} : (tensor<1x4x10x8xf32>) -> tensor<4x10x8xf32>
  %2 = graph.attention %q, %k, %v {scale = 0.35 : f64} : (tensor<4x10x8xf32>, tensor<4x10x8xf32>, tensor<4x10x8xf32>) -> tensor<4x10x8xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 1, 0, 2>} : (tensor<4x10x8xf32>) -> tensor<10x4x8xf32>
  %4 = graph.reshape %3 {shape = array<i64: 10, 32>} : (tensor<10x4x8xf32>) -> tensor<10x32xf32>
  func.return %4 : tensor<10x32xf32>
}

// Heads that are no run of columns: each would carry into another dimension, so the copy stays.
// CHECK-LABEL: func.func @carries
// CHECK:       linalg.generic
// CHECK:       te.attention
func.func @carries(%x: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = graph.reshape %0 {shape = array<i64: 3, 8>} : (tensor<4x6xf32>) -> tensor<3x8xf32>
  %2 = graph.reshape %0 {shape = array<i64: 4, 6>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = graph.attention %1, %1, %1 {scale = 1.0 : f64} : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %4 = graph.reshape %3 {shape = array<i64: 4, 6>} : (tensor<3x8xf32>) -> tensor<4x6xf32>
  func.return %4 : tensor<4x6xf32>
}

// Casts of bfloat16 stay beside the attention: it reads its parts of one value, and gives its result in order.
// CHECK-LABEL: func.func @of_bfloat16
// CHECK-DAG:   %[[Q:.*]] = tensor.extract_slice %x[0, 0] [10, 32] [1, 1] : tensor<10x96xbf16> to tensor<10x32xbf16>
// CHECK-DAG:   linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, ((d0 * 8) + d2))>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]{{.*}} ins(%[[Q]] : tensor<10x32xbf16>) outs(%{{.*}} : tensor<4x10x8xf32>)
// CHECK:       %[[Y:.*]] = te.attention {{.*}} permutation = array<i64: 1, 0, 2>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]{{.*}} ins(%[[Y]] :
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:  arith.truncf
// CHECK-NOT:   linalg.generic
// CHECK:       func.return
func.func @of_bfloat16(%x: tensor<10x96xbf16>) -> tensor<10x4x8xbf16> {
  %0 = graph.reshape %x {shape = array<i64: 10, 3, 4, 8>} : (tensor<10x96xbf16>) -> tensor<10x3x4x8xbf16>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 2, 0, 3>} : (tensor<10x3x4x8xbf16>) -> tensor<3x4x10x8xbf16>
  %q1 = graph.slice %1 {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 4, 10, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<3x4x10x8xbf16>) -> tensor<1x4x10x8xbf16>
  %q2 = graph.reshape %q1 {shape = array<i64: 4, 10, 8>} : (tensor<1x4x10x8xbf16>) -> tensor<4x10x8xbf16>
  %q = graph.cast %q2 {to = f32} : (tensor<4x10x8xbf16>) -> tensor<4x10x8xf32>
  %2 = graph.attention %q, %q, %q {scale = 0.35 : f64} : (tensor<4x10x8xf32>, tensor<4x10x8xf32>, tensor<4x10x8xf32>) -> tensor<4x10x8xf32>
  %3 = graph.cast %2 {to = bf16} : (tensor<4x10x8xf32>) -> tensor<4x10x8xbf16>
  %4 = graph.transpose %3 {permutation = array<i64: 1, 0, 2>} : (tensor<4x10x8xbf16>) -> tensor<10x4x8xbf16>
  func.return %4 : tensor<10x4x8xbf16>
}

// Products of large matrices copy blocks of both factors, however they lie.
// CHECK-LABEL: func.func @turned_factors
// CHECK-NOT:   iterator_types = ["parallel", "parallel"]}
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]{{.*}} ins(%x, %y :
// CHECK:       func.return
func.func @turned_factors(%x: tensor<48x32xf64>, %y: tensor<40x48xf64>) -> tensor<32x40xf64> {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<48x32xf64>) -> tensor<32x48xf64>
  %1 = graph.transpose %y {permutation = array<i64: 1, 0>} : (tensor<40x48xf64>) -> tensor<48x40xf64>
  %2 = graph.matmul %0, %1 : (tensor<32x48xf64>, tensor<48x40xf64>) -> tensor<32x40xf64>
  func.return %2 : tensor<32x40xf64>
}

// What something else reads too is made anyway; so is it for products of few columns.
// CHECK-LABEL: func.func @turned_for_two
// CHECK:       %[[T:.*]] = linalg.generic {{.*}} ins(%x :
// CHECK:       ["parallel", "parallel", "reduction"]} ins(%[[T]], %y :
func.func @turned_for_two(%x: tensor<48x32xf32>, %y: tensor<48x40xf32>) -> (tensor<32x48xf32>, tensor<32x40xf32>) {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<48x32xf32>) -> tensor<32x48xf32>
  %1 = graph.matmul %0, %y : (tensor<32x48xf32>, tensor<48x40xf32>) -> tensor<32x40xf32>
  func.return %0, %1 : tensor<32x48xf32>, tensor<32x40xf32>
}
// CHECK-LABEL: func.func @turned_for_few
// CHECK:       %[[F:.*]] = linalg.generic {{.*}} ins(%x :
// CHECK:       ["parallel", "parallel", "reduction"]} ins(%[[F]], %y :
func.func @turned_for_few(%x: tensor<48x32xf32>, %y: tensor<48x31xf32>) -> tensor<32x31xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<48x32xf32>) -> tensor<32x48xf32>
  %1 = graph.matmul %0, %y : (tensor<32x48xf32>, tensor<48x31xf32>) -> tensor<32x31xf32>
  func.return %1 : tensor<32x31xf32>
}
