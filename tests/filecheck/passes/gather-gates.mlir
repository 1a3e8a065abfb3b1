// RUN: irkit-opt %s -p 'gather-gates{device="h200"},dce' | filecheck %s
// RUN: irkit-opt %s -p 'gather-gates{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'gather-gates{device="cpu2"}' | filecheck %s --check-prefix=CPU

// Two gates, one of which is read twice: sums side by side, and what is added, by parts.
// CHECK-LABEL: func.func @gates
// CHECK-NEXT: %[[T:.*]] = graph.transpose %r {permutation = array<i64: 1, 0>}
// CHECK-NEXT: %[[W:.*]] = graph.reshape %[[T]] {shape = array<i64: 2, 24, 64>}
// CHECK-NEXT: %[[C:.*]] = graph.expression %h, %[[W]] {irkit.precision = "tf32", text = "C(m, n, g) +=! A(m, k) * B(g, n, k)"} : (tensor<32x64xf32>, tensor<2x24x64xf32>) -> tensor<32x24x2xf32>
// CHECK-NEXT: %[[X:.*]] = graph.slice %x {offsets = array<i64: 0, 0>
// CHECK-NEXT: %[[A:.*]] = graph.expression %[[X]], %[[C]] {text = "Y(m, n) = S(m, n) + C(m, n, 0)"}
// CHECK-NEXT: %[[Y:.*]] = graph.slice %x {offsets = array<i64: 0, 24>
// CHECK-NEXT: %[[B:.*]] = graph.expression %[[Y]], %[[C]] {text = "Y(m, n) = S(m, n) + C(m, n, 1)"}
// CHECK-NEXT: graph.tanh %[[A]]
// CHECK-NEXT: graph.mul %[[A]], %[[B]]
// CPU-LABEL: func.func @gates
// CPU: graph.matmul
func.func @gates(%h: tensor<32x64xf32>, %r: tensor<64x48xf32>, %x: tensor<32x48xf32>) -> (tensor<32x24xf32>, tensor<32x24xf32>) {
  %0 = graph.matmul %h, %r {irkit.precision = "tf32"} : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %1 = graph.add %x, %0 : (tensor<32x48xf32>, tensor<32x48xf32>) -> tensor<32x48xf32>
  %2 = graph.slice %1 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %3 = graph.tanh %2 : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %4 = graph.slice %1 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %5 = graph.slice %1 {offsets = array<i64: 0, 24>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %6 = graph.mul %4, %5 : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  func.return %3, %6 : tensor<32x24xf32>, tensor<32x24xf32>
}

// Rows of weights, and what is added to each part by itself.
// CHECK-LABEL: func.func @parts
// CHECK-NEXT: %[[W:.*]] = graph.reshape %r {shape = array<i64: 2, 24, 64>}
// CHECK-NEXT: %[[C:.*]] = graph.expression %h, %[[W]]
// CHECK-NEXT: %[[A:.*]] = graph.expression %x, %[[C]] {text = "Y(m, n) = S(m, n) + C(m, n, 0)"}
// CHECK-NEXT: %[[S:.*]] = graph.tanh %x
// CHECK-NEXT: %[[B:.*]] = graph.expression %[[S]], %[[C]] {text = "Y(m, n) = S(m, n) + C(m, n, 1)"}
// CHECK-NEXT: graph.mul %[[A]], %[[B]]
func.func @parts(%h: tensor<32x64xf32>, %r: tensor<48x64xf32>, %x: tensor<32x24xf32>) -> tensor<32x24xf32> {
  %0 = graph.gemm %h, %r {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x64xf32>, tensor<48x64xf32>) -> tensor<32x48xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %2 = graph.slice %0 {offsets = array<i64: 0, 24>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %3 = graph.add %x, %1 : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %4 = graph.tanh %x : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %5 = graph.add %2, %4 : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %6 = graph.mul %3, %5 : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  func.return %6 : tensor<32x24xf32>
}

// A row that is added.
// CHECK-LABEL: func.func @row
// CHECK: %[[B:.*]] = graph.slice %b {offsets = array<i64: 24>, sizes = array<i64: 24>
// CHECK-NEXT: graph.expression %[[B]], %{{.*}} {text = "Y(m, n) = S(n) + C(m, n, 1)"}
func.func @row(%h: tensor<32x64xf32>, %r: tensor<48x64xf32>, %b: tensor<48xf32>) -> tensor<32x24xf32> {
  %p = graph.gemm %h, %r {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x64xf32>, tensor<48x64xf32>) -> tensor<32x48xf32>
  %0 = graph.add %b, %p : (tensor<48xf32>, tensor<32x48xf32>) -> tensor<32x48xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %2 = graph.slice %0 {offsets = array<i64: 0, 24>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %3 = graph.mul %1, %2 : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  func.return %3 : tensor<32x24xf32>
}

// Of a matrix and a row one is added: operands of all gates would be too many for what follows to be one.
// CHECK-LABEL: func.func @bias
// CHECK: graph.gemm
func.func @bias(%h: tensor<32x64xf32>, %r: tensor<48x64xf32>, %x: tensor<32x48xf32>, %b: tensor<48xf32>) -> tensor<32x24xf32> {
  %p = graph.gemm %h, %r {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x64xf32>, tensor<48x64xf32>) -> tensor<32x48xf32>
  %q = graph.add %x, %p : (tensor<32x48xf32>, tensor<32x48xf32>) -> tensor<32x48xf32>
  %0 = graph.add %q, %b : (tensor<32x48xf32>, tensor<48xf32>) -> tensor<32x48xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %2 = graph.slice %0 {offsets = array<i64: 0, 24>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %3 = graph.mul %1, %2 : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  func.return %3 : tensor<32x24xf32>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: graph.expression
// MISSED: it has 1 parts, not 2, 4 or 8
// MISSED: its parts are not equally wide, or leave columns out
// MISSED: something reads all of its columns
// MISSED: to a part of its columns nothing is added, or another part
// MISSED: it has few rows, or so many results that a product does more at once by itself
func.func @left_alone(%h: tensor<32x64xf32>, %r: tensor<64x48xf32>, %few: tensor<4x64xf32>)
    -> (tensor<32x24xf32>, tensor<32x16xf32>, tensor<32x48xf32>, tensor<24x32xf32>, tensor<4x24xf32>) {
  %0 = graph.matmul %h, %r : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %1 = graph.slice %0 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %2 = graph.tanh %1 : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %3 = graph.matmul %h, %r : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %4 = graph.slice %3 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 16>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x16xf32>
  %5 = graph.slice %3 {offsets = array<i64: 0, 16>, sizes = array<i64: 32, 16>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x16xf32>
  %6 = graph.mul %4, %5 : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %7 = graph.matmul %h, %r : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %8 = graph.tanh %7 : (tensor<32x48xf32>) -> tensor<32x48xf32>
  %9 = graph.matmul %h, %r : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %10 = graph.slice %9 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %b = graph.slice %9 {offsets = array<i64: 0, 24>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x24xf32>
  %c = graph.add %10, %b : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %11 = graph.transpose %c {permutation = array<i64: 1, 0>} : (tensor<32x24xf32>) -> tensor<24x32xf32>
  %12 = graph.matmul %few, %r : (tensor<4x64xf32>, tensor<64x48xf32>) -> tensor<4x48xf32>
  %13 = graph.slice %12 {offsets = array<i64: 0, 0>, sizes = array<i64: 4, 24>, strides = array<i64: 1, 1>} : (tensor<4x48xf32>) -> tensor<4x24xf32>
  %14 = graph.tanh %13 : (tensor<4x24xf32>) -> tensor<4x24xf32>
  func.return %2, %6, %8, %11, %14 : tensor<32x24xf32>, tensor<32x16xf32>, tensor<32x48xf32>, tensor<24x32xf32>, tensor<4x24xf32>
}

// One column is no part's, though the parts are as wide as half of all would be.
// CHECK-LABEL: func.func @a_column_left_out
// CHECK-NOT: graph.expression
func.func @a_column_left_out(%h: tensor<32x64xf32>, %r: tensor<64x49xf32>, %x: tensor<32x49xf32>) -> tensor<32x24xf32> {
  %0 = graph.matmul %h, %r : (tensor<32x64xf32>, tensor<64x49xf32>) -> tensor<32x49xf32>
  %1 = graph.add %x, %0 : (tensor<32x49xf32>, tensor<32x49xf32>) -> tensor<32x49xf32>
  %2 = graph.slice %1 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x49xf32>) -> tensor<32x24xf32>
  %3 = graph.slice %1 {offsets = array<i64: 0, 24>, sizes = array<i64: 32, 24>, strides = array<i64: 1, 1>} : (tensor<32x49xf32>) -> tensor<32x24xf32>
  %4 = graph.mul %2, %3 : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  func.return %4 : tensor<32x24xf32>
}
