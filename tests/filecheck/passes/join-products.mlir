// RUN: irkit-opt %s -p join-products | filecheck %s
// RUN: irkit-opt %s -p join-products --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'join-products{device="cpu1"}' | filecheck %s --check-prefix=CPU

// Rows that are added go along, and what nothing is added to has -0: each sum is the product itself.
// CHECK-LABEL: func.func @attention
// CHECK: %[[W:.*]] = arith.constant dense<{{.*}}> : tensor<2x5xf32>
// CHECK: %[[P:.*]] = graph.matmul %x, %[[W]] {irkit.precision = "ieee"} : (tensor<?x3x2xf32>, tensor<2x5xf32>) -> tensor<?x3x5xf32>
// CHECK: %[[B:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, -0.000000e+00, -0.000000e+00, 3.000000e+00]> : tensor<5xf32>
// CHECK: %[[S:.*]] = graph.add %[[P]], %[[B]] : (tensor<?x3x5xf32>, tensor<5xf32>) -> tensor<?x3x5xf32>
// CHECK: %[[Q:.*]] = graph.slice %[[S]] {offsets = array<i64: 0, 0, 0>, sizes = array<i64: -9223372036854775808, 3, 2>, strides = array<i64: 1, 1, 1>}
// CHECK: %[[K:.*]] = graph.slice %[[S]] {offsets = array<i64: 0, 0, 2>, sizes = array<i64: -9223372036854775808, 3, 2>, strides = array<i64: 1, 1, 1>}
// CHECK: %[[V:.*]] = graph.slice %[[S]] {offsets = array<i64: 0, 0, 4>, sizes = array<i64: -9223372036854775808, 3, 1>, strides = array<i64: 1, 1, 1>}
// CHECK-NOT: graph.matmul
// CHECK: %[[M:.*]] = graph.mul %[[Q]], %
// CHECK: graph.attention %[[M]], %[[K]], %[[V]]
// CPU-LABEL: func.func @attention
// CPU-COUNT-3: graph.matmul %x
func.func @attention(%x: tensor<?x3x2xf32>) -> tensor<?x3x1xf32> {
  %wq = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %wk = arith.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
  %wv = arith.constant dense<[[9.0], [10.0]]> : tensor<2x1xf32>
  %bq = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %bv = arith.constant dense<3.0> : tensor<1xf32>
  %scale = arith.constant dense<0.5> : tensor<1xf32>
  %0 = graph.matmul %x, %wq {irkit.precision = "ieee"} : (tensor<?x3x2xf32>, tensor<2x2xf32>) -> tensor<?x3x2xf32>
  %q = graph.add %bq, %0 : (tensor<2xf32>, tensor<?x3x2xf32>) -> tensor<?x3x2xf32>
  %k = graph.matmul %x, %wk {irkit.precision = "ieee"} : (tensor<?x3x2xf32>, tensor<2x2xf32>) -> tensor<?x3x2xf32>
  %1 = graph.matmul %x, %wv {irkit.precision = "ieee"} : (tensor<?x3x2xf32>, tensor<2x1xf32>) -> tensor<?x3x1xf32>
  %v = graph.add %1, %bv : (tensor<?x3x1xf32>, tensor<1xf32>) -> tensor<?x3x1xf32>
  %s = graph.mul %q, %scale : (tensor<?x3x2xf32>, tensor<1xf32>) -> tensor<?x3x2xf32>
  %y = graph.attention %s, %k, %v {scale = 1.0 : f64} : (tensor<?x3x2xf32>, tensor<?x3x2xf32>, tensor<?x3x1xf32>) -> tensor<?x3x1xf32>
  func.return %y : tensor<?x3x1xf32>
}

// Weights that lie the other way round, moved on the way to attention.
// CHECK-LABEL: func.func @gemm
// CHECK: graph.gemm %x, %{{.*}} {{.*}}trans_b = true{{.*}} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
// CHECK-NOT: graph.gemm
// CHECK: graph.attention
func.func @gemm(%x: tensor<4x2xf32>, %v: tensor<2x4x1xf32>) -> tensor<2x4x1xf32> {
  %wq = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %wk = arith.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
  %0 = graph.gemm %x, %wq {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %1 = graph.gemm %x, %wk {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %2 = graph.reshape %0 {shape = array<i64: 4, 2, 1>} : (tensor<4x2xf32>) -> tensor<4x2x1xf32>
  %q = graph.transpose %2 {permutation = array<i64: 1, 0, 2>} : (tensor<4x2x1xf32>) -> tensor<2x4x1xf32>
  %3 = graph.reshape %1 {shape = array<i64: 4, 2, 1>} : (tensor<4x2xf32>) -> tensor<4x2x1xf32>
  %k = graph.transpose %3 {permutation = array<i64: 1, 0, 2>} : (tensor<4x2x1xf32>) -> tensor<2x4x1xf32>
  %y = graph.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<2x4x1xf32>, tensor<2x4x1xf32>, tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  func.return %y : tensor<2x4x1xf32>
}

// Left alone: another precision, weights that are no constant, a product that is returned too.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-4: graph.matmul %x
// MISSED-DAG: no other product has its first operand
// MISSED-DAG: its second operand is no constant matrix
// MISSED-DAG: something else than attention reads what it gives
func.func @apart(%x: tensor<3x2xf32>, %a: tensor<2x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = graph.matmul %x, %w {irkit.precision = "ieee"} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %1 = graph.matmul %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %2 = graph.matmul %x, %a : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %y = graph.attention %0, %1, %2 {scale = 1.0 : f64} : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %3 = graph.matmul %x, %w {irkit.precision = "bf16"} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %z = graph.attention %3, %y, %y {scale = 1.0 : f64} : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  func.return %y, %z, %3 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}
