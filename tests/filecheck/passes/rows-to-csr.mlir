// RUN: irkit-opt %s --split-input-file -p rows-to-csr,dce | filecheck %s

// A scaler, a norm of each row and the check that all is finite are of what is stored; so is the product.
// CHECK-LABEL: func.func @main(%x_data: tensor<1x?xf32>, %x_indices: tensor<1x?xi32>, %x_starts: tensor<?xi64>, %x_ends: tensor<?xi64>)
// CHECK-SAME: irkit.dims = {{\[\[}}"stored"], ["stored"], ["batch"], ["batch"]]
// CHECK: %[[S:.*]] = arith.constant dense<[2.000000e+00, 4.000000e+00, 8.000000e+00]> : tensor<3xf32>
// CHECK: %[[N:.*]] = graph.csr_reduce %x_data, %x_indices, %x_starts, %x_ends, %[[S]] {steps = ["div x a0", "mul s0 s0"], kind = "sum", initial = 0.000000e+00 : f64}
// CHECK: %[[R:.*]] = graph.sqrt %[[N]]
// CHECK: graph.csr_reduce %x_data, %x_indices, %x_starts, %x_ends, %[[S]], %[[R]], %{{.*}} {steps = ["div x a0", "div s0 a1", "abs s1", "le s2 a2", "f32_of s3"], kind = "min", initial = 1.000000e+00 : f64}
// CHECK: graph.reshape
// CHECK: graph.csr_matmul %x_data, %x_indices, %x_starts, %x_ends, %{{.*}}, %[[S]], %[[R]] {steps = ["div x a0", "div s0 a1", "f64 s1"]}
// CHECK: graph.add
func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x2xf64>, tensor<?xf32>) {
  %scale = arith.constant dense<[2.0, 4.0, 8.0]> : tensor<3xf32>
  %max = arith.constant dense<3.0e38> : tensor<1xf32>
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf64>
  %b = arith.constant dense<[0.5, 0.25]> : tensor<2xf64>
  %0 = graph.div %x, %scale : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %1 = graph.mul %0, %0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %2 = graph.reduce %1 {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<?x3xf32>) -> tensor<?x1xf32>
  %3 = graph.sqrt %2 : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %4 = graph.div %0, %3 : (tensor<?x3xf32>, tensor<?x1xf32>) -> tensor<?x3xf32>
  %5 = graph.abs %4 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %6 = graph.compare %5, %max {predicate = "le"} : (tensor<?x3xf32>, tensor<1xf32>) -> tensor<?x3xi1>
  %7 = graph.cast %6 {to = f32} : (tensor<?x3xi1>) -> tensor<?x3xf32>
  %8 = graph.reduce %7 {kind = "min", axes = array<i64: 1>, keepdims = false} : (tensor<?x3xf32>) -> tensor<?xf32>
  %9 = graph.cast %4 {to = f64} : (tensor<?x3xf32>) -> tensor<?x3xf64>
  %10 = graph.matmul %9, %w : (tensor<?x3xf64>, tensor<3x2xf64>) -> tensor<?x2xf64>
  %11 = graph.add %10, %b : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  func.return %11, %8 : tensor<?x2xf64>, tensor<?xf32>
}

// -----

// Picked columns are a mask, and rows of the matrix at their places.
// CHECK-LABEL: func.func @main(%x_data
// CHECK-DAG: %[[W:.*]] = arith.constant dense<{{\[\[}}2.000000e+00], [0.000000e+00], [1.000000e+00]]> : tensor<3x1xf64>
// CHECK-DAG: %[[S:.*]] = arith.constant dense<[5.000000e+00, 1.000000e+00, 4.000000e+00]> : tensor<3xf64>
// CHECK-DAG: %[[M:.*]] = arith.constant dense<[true, false, true]> : tensor<3xi1>
// CHECK: graph.csr_matmul %x_data, %x_indices, %x_starts, %x_ends, %[[W]], %[[M]], %[[S]], %{{.*}} {steps = ["mul x a1", "where a0 s0 a2"]}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?x1xf64> {
  %columns = arith.constant dense<[2, 0]> : tensor<2xi64>
  %scale = arith.constant dense<[4.0, 5.0]> : tensor<2xf64>
  %w = arith.constant dense<[[1.0], [2.0]]> : tensor<2x1xf64>
  %0 = graph.gather %x, %columns {axis = 1 : i64} : (tensor<?x3xf64>, tensor<2xi64>) -> tensor<?x2xf64>
  %1 = graph.mul %0, %scale : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  %2 = graph.matmul %1, %w : (tensor<?x2xf64>, tensor<2x1xf64>) -> tensor<?x1xf64>
  func.return %2 : tensor<?x1xf64>
}

// -----

// The largest magnitude: what is not stored is no larger.
// CHECK-LABEL: func.func @main(%x_data
// CHECK: graph.csr_reduce %x_data, %x_indices, %x_starts, %x_ends {steps = ["abs x"], kind = "max", initial = 0.000000e+00 : f64}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?x1xf64> {
  %0 = graph.abs %x : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %1 = graph.reduce %0 {kind = "max", axes = array<i64: 1>, keepdims = true} : (tensor<?x3xf64>) -> tensor<?x1xf64>
  func.return %1 : tensor<?x1xf64>
}

// -----

// What is concatenated is not made: each part is multiplied by its own rows, and the products are added; so are
// the checks of all of it.
// CHECK-LABEL: func.func @main(%x_data: tensor<1x?xf64>
// CHECK-NOT: graph.concat
// CHECK: %[[L:.*]] = graph.csr_matmul %x_data, %x_indices, %x_starts, %x_ends, %{{.*}} {steps = ["where a0 x a1"]}
// CHECK: %[[R:.*]] = graph.csr_matmul %x_data, %x_indices, %x_starts, %x_ends, %{{.*}} {steps = ["mul x a{{.}}", "where a{{.}} s0 a{{.}}"]}
// CHECK: graph.add %[[L]], %[[R]]
// CHECK: %[[F:.*]] = graph.csr_reduce {{.*}}kind = "min"
// CHECK: %[[S:.*]] = graph.csr_reduce {{.*}}kind = "min"
// CHECK: graph.min
func.func @main(%x: tensor<?x3xf64>) -> (tensor<?x1xf64>, tensor<?x1xf64>) {
  %front = arith.constant dense<[0, 1]> : tensor<2xi64>
  %back = arith.constant dense<[2]> : tensor<1xi64>
  %two = arith.constant dense<2.0> : tensor<1xf64>
  %most = arith.constant dense<1.0e300> : tensor<1xf64>
  %w = arith.constant dense<[[3.0], [4.0], [5.0]]> : tensor<3x1xf64>
  %0 = graph.gather %x, %front {axis = 1 : i64} : (tensor<?x3xf64>, tensor<2xi64>) -> tensor<?x2xf64>
  %1 = graph.gather %x, %back {axis = 1 : i64} : (tensor<?x3xf64>, tensor<1xi64>) -> tensor<?x1xf64>
  %2 = graph.mul %1, %two : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  %3 = graph.concat(%0, %2) {axis = 1 : i64} : (tensor<?x2xf64>, tensor<?x1xf64>) -> tensor<?x3xf64>
  %4 = graph.matmul %3, %w : (tensor<?x3xf64>, tensor<3x1xf64>) -> tensor<?x1xf64>
  %5 = graph.abs %3 : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %6 = graph.compare %5, %most {predicate = "le"} : (tensor<?x3xf64>, tensor<1xf64>) -> tensor<?x3xi1>
  %7 = graph.cast %6 {to = f64} : (tensor<?x3xi1>) -> tensor<?x3xf64>
  %8 = graph.reduce %7 {kind = "min", axes = array<i64: 1>, keepdims = true} : (tensor<?x3xf64>) -> tensor<?x1xf64>
  func.return %4, %8 : tensor<?x1xf64>, tensor<?x1xf64>
}
