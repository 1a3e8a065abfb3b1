// RUN: irkit-opt %s -p hoist-input-products | filecheck %s
// RUN: irkit-opt %s -p hoist-input-products --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// Steps first, the second in reverse order: one product of all of them, before the first.
// CHECK-LABEL: func.func @steps
// CHECK: %[[ROWS:.*]] = graph.reshape %x {shape = array<i64: 2, 4>}
// CHECK-NEXT: %[[P:.*]] = graph.matmul %[[ROWS]], %w : (tensor<2x4xf32>, tensor<4x3xf32>)
// CHECK-NEXT: %[[Y:.*]] = graph.reshape %[[P]] {shape = array<i64: 2, 1, 3>}
// CHECK-NEXT: %[[S1:.*]] = graph.slice %[[Y]] {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 1, 3>
// CHECK-NEXT: %[[Y1:.*]] = graph.reshape %[[S1]] {shape = array<i64: 1, 3>}
// CHECK: %[[S0:.*]] = graph.slice %[[Y]] {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 1, 3>
// CHECK-NEXT: %[[Y0:.*]] = graph.reshape %[[S0]] {shape = array<i64: 1, 3>}
// CHECK-NOT: graph.matmul
// CHECK: graph.add %[[Y1]], %[[Y0]]
func.func @steps(%x: tensor<2x1x4xf32>) -> tensor<1x3xf32> {
  %w = arith.constant dense<0.5> : tensor<4x3xf32>
  %0 = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 1, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x1x4xf32>) -> tensor<1x1x4xf32>
  %1 = graph.reshape %0 {shape = array<i64: 1, 4>} : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
  %2 = graph.matmul %1, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %3 = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 1, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x1x4xf32>) -> tensor<1x1x4xf32>
  %4 = graph.reshape %3 {shape = array<i64: 1, 4>} : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
  %v = arith.constant dense<0.5> : tensor<4x3xf32>
  %5 = graph.matmul %4, %v : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %6 = graph.add %2, %5 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  func.return %6 : tensor<1x3xf32>
}

// An open batch before the steps: no rows are joined.
// CHECK-LABEL: func.func @open_batch
// CHECK: %[[P:.*]] = graph.matmul %x, %w : (tensor<?x2x4xf32>, tensor<4x3xf32>) -> tensor<?x2x3xf32>
// CHECK: graph.slice %[[P]] {offsets = array<i64: 0, 0, 0>, sizes = array<i64: -9223372036854775808, 1, 3>
// CHECK: graph.slice %[[P]] {offsets = array<i64: 0, 1, 0>, sizes = array<i64: -9223372036854775808, 1, 3>
func.func @open_batch(%x: tensor<?x2x4xf32>) -> tensor<?x3xf32> {
  %w = arith.constant dense<0.5> : tensor<4x3xf32>
  %0 = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: -9223372036854775808, 1, 4>, strides = array<i64: 1, 1, 1>} : (tensor<?x2x4xf32>) -> tensor<?x1x4xf32>
  %1 = graph.reshape %0 {shape = array<i64: -9223372036854775808, 4>} : (tensor<?x1x4xf32>) -> tensor<?x4xf32>
  %2 = graph.matmul %1, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %3 = graph.slice %x {offsets = array<i64: 0, 1, 0>, sizes = array<i64: -9223372036854775808, 1, 4>, strides = array<i64: 1, 1, 1>} : (tensor<?x2x4xf32>) -> tensor<?x1x4xf32>
  %4 = graph.reshape %3 {shape = array<i64: -9223372036854775808, 4>} : (tensor<?x1x4xf32>) -> tensor<?x4xf32>
  %5 = graph.matmul %4, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %6 = graph.add %2, %5 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %6 : tensor<?x3xf32>
}

// A bias and the precision go along.
// CHECK-LABEL: func.func @gemm
// CHECK: graph.gemm %{{.*}}, %w, %b {irkit.precision = "ieee", trans_a = false, trans_b = true, alpha = 5.000000e-01 : f64, beta = 2.000000e+00 : f64} : (tensor<6x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<6x3xf32>
// CHECK-NOT: graph.gemm
func.func @gemm(%x: tensor<2x3x4xf32>) -> tensor<3x3xf32> {
  %w = arith.constant dense<0.5> : tensor<3x4xf32>
  %b = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  %1 = graph.reshape %0 {shape = array<i64: 3, 4>} : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  %2 = graph.gemm %1, %w, %b {trans_a = false, trans_b = true, alpha = 0.5 : f64, beta = 2.0 : f64, irkit.precision = "ieee"} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  %3 = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  %4 = graph.reshape %3 {shape = array<i64: 3, 4>} : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  %5 = graph.gemm %4, %w, %b {trans_a = false, trans_b = true, alpha = 0.5 : f64, beta = 2.0 : f64, irkit.precision = "ieee"} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  %6 = graph.mul %2, %5 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %6 : tensor<3x3xf32>
}

// Weights that are trained are one value, no constant: that is enough.
// CHECK-LABEL: func.func @trained
// CHECK: graph.gemm %{{.*}}, %w, %b {{{.*}}} : (tensor<6x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<6x3xf32>
// CHECK-NOT: graph.gemm
func.func @trained(%x: tensor<2x3x4xf32>, %w: tensor<3x4xf32>, %b: tensor<3xf32>) -> tensor<3x3xf32> {
  %0 = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  %1 = graph.reshape %0 {shape = array<i64: 3, 4>} : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  %2 = graph.gemm %1, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  %3 = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  %4 = graph.reshape %3 {shape = array<i64: 3, 4>} : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  %5 = graph.gemm %4, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  %6 = graph.mul %2, %5 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %6 : tensor<3x3xf32>
}

// Left alone: another matrix in each step, and rows of their own that are added.
// CHECK-LABEL: func.func @several
// CHECK-COUNT-4: graph.gemm %{{.*}} : (tensor<3x4xf32>
// MISSED-DAG: what is added is not the same for all rows
func.func @several(%x: tensor<2x3x4xf32>, %w: tensor<4x3xf32>, %v: tensor<4x3xf32>, %c: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %0 = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  %1 = graph.reshape %0 {shape = array<i64: 3, 4>} : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  %2 = graph.gemm %1, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  %3 = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  %4 = graph.reshape %3 {shape = array<i64: 3, 4>} : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  %5 = graph.gemm %4, %v {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  %6 = graph.gemm %1, %w, %c {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<3x4xf32>, tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %7 = graph.gemm %4, %w, %c {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<3x4xf32>, tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %2, %5, %6, %7 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
}

// Left alone: outputs of a layer before, a part of each row, two constants, a few rows of many.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-8: graph.matmul %{{.*}} : (tensor<1x4xf32>
// MISSED-DAG: what it is a part of is made piece by piece
// MISSED-DAG: the part has not all of each row
// MISSED-DAG: no other step has such a product
// MISSED-DAG: most of what it is a part of is in no product
func.func @apart(%a: tensor<1x4xf32>, %b: tensor<1x4xf32>, %wide: tensor<2x6xf32>, %x: tensor<2x4xf32>, %long: tensor<9x4xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>) {
  %w = arith.constant dense<0.5> : tensor<4x3xf32>
  %v = arith.constant dense<0.25> : tensor<4x3xf32>
  %c = graph.concat(%a, %b) {axis = 0 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %c0 = graph.slice %c {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %c1 = graph.slice %c {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %0 = graph.matmul %c0, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %1 = graph.matmul %c1, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %w0 = graph.slice %wide {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<1x4xf32>
  %w1 = graph.slice %wide {offsets = array<i64: 1, 2>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<1x4xf32>
  %2 = graph.matmul %w0, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %3 = graph.matmul %w1, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %x0 = graph.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %x1 = graph.slice %x {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %4 = graph.matmul %x0, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %5 = graph.matmul %x1, %v : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %l0 = graph.slice %long {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<9x4xf32>) -> tensor<1x4xf32>
  %l1 = graph.slice %long {offsets = array<i64: 8, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<9x4xf32>) -> tensor<1x4xf32>
  %6 = graph.matmul %l0, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %7 = graph.matmul %l1, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  func.return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>
}
