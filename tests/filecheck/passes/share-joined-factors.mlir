// RUN: irkit-opt %s -p 'share-joined-factors{device="h200"},dce' | filecheck %s
// RUN: irkit-opt %s -p 'share-joined-factors{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'share-joined-factors{device="cpu2"}' | filecheck %s --check-prefix=CPU

// Gradients of two gates, in whatever order they are added: one sum over both.
// CHECK-LABEL: func.func @gates
// CHECK-NEXT: %[[A:.*]] = graph.reshape %a {shape = array<i64: 1, 32, 64>}
// CHECK-NEXT: %[[B:.*]] = graph.reshape %b {shape = array<i64: 1, 32, 64>}
// CHECK-NEXT: %[[S:.*]] = graph.concat(%[[A]], %[[B]]) {axis = 0 : i64} : {{.*}} -> tensor<2x32x64xf32>
// CHECK-NEXT: %[[T:.*]] = graph.transpose %w {permutation = array<i64: 1, 0>}
// CHECK-NEXT: %[[W:.*]] = graph.reshape %[[T]] {shape = array<i64: 40, 2, 64>}
// CHECK-NEXT: %[[P:.*]] = graph.expression %[[S]], %[[W]] {irkit.precision = "tf32", text = "C(m, n) +=! A(p, m, k) * B(n, p, k)"} : (tensor<2x32x64xf32>, tensor<40x2x64xf32>) -> tensor<32x40xf32>
// CHECK-NEXT: graph.tanh %[[P]]
// CPU-LABEL: func.func @gates
// CPU: graph.gemm
func.func @gates(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %w: tensor<128x40xf32>) -> tensor<32x40xf32> {
  %0 = graph.pad %b {low = array<i64: 0, 64>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x128xf32>
  %1 = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 64>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x128xf32>
  %2 = graph.add %0, %1 : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %3 = graph.gemm %2, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64, irkit.precision = "tf32"} : (tensor<32x128xf32>, tensor<128x40xf32>) -> tensor<32x40xf32>
  %4 = graph.tanh %3 : (tensor<32x40xf32>) -> tensor<32x40xf32>
  func.return %4 : tensor<32x40xf32>
}

// The second factor transposed: its columns lead already.
// CHECK-LABEL: func.func @lead
// CHECK-NOT: graph.transpose
// CHECK: %[[W:.*]] = graph.reshape %w {shape = array<i64: 40, 2, 64>}
// CHECK-NEXT: graph.expression %{{.*}}, %[[W]]
func.func @lead(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %w: tensor<40x128xf32>) -> tensor<32x40xf32> {
  %0 = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 64>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x128xf32>
  %1 = graph.pad %b {low = array<i64: 0, 64>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x128xf32>
  %2 = graph.add %0, %1 : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %3 = graph.gemm %2, %w {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x128xf32>, tensor<40x128xf32>) -> tensor<32x40xf32>
  %4 = graph.tanh %3 : (tensor<32x40xf32>) -> tensor<32x40xf32>
  func.return %4 : tensor<32x40xf32>
}

// Of float64 a product each, whose results are added where they are read. The second factor's columns are cut.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[W:.*]] = graph.reshape %w {shape = array<i64: 40, 2, 64>}
// CHECK-NEXT: %[[V:.*]] = graph.transpose %[[W]] {permutation = array<i64: 1, 2, 0>}
// CHECK-NEXT: %[[P:.*]] = graph.matmul %{{.*}}, %[[V]] : (tensor<2x32x64xf64>, tensor<2x64x40xf64>) -> tensor<2x32x40xf64>
// CHECK-NEXT: graph.slice %[[P]] {offsets = array<i64: 0, 0, 0>
// CHECK-NEXT: %[[X:.*]] = graph.reshape
// CHECK-NEXT: graph.slice %[[P]] {offsets = array<i64: 1, 0, 0>
// CHECK-NEXT: %[[Y:.*]] = graph.reshape
// CHECK-NEXT: %[[T:.*]] = graph.add %[[X]], %[[Y]]
// CHECK-NEXT: graph.tanh %[[T]]
func.func @transposed(%a: tensor<32x64xf64>, %b: tensor<32x64xf64>, %w: tensor<40x128xf64>) -> tensor<32x40xf64> {
  %0 = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 64>, value = 0.0 : f64} : (tensor<32x64xf64>) -> tensor<32x128xf64>
  %1 = graph.pad %b {low = array<i64: 0, 64>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<32x64xf64>) -> tensor<32x128xf64>
  %2 = graph.add %0, %1 : (tensor<32x128xf64>, tensor<32x128xf64>) -> tensor<32x128xf64>
  %3 = graph.gemm %2, %w {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x128xf64>, tensor<40x128xf64>) -> tensor<32x40xf64>
  %4 = graph.tanh %3 : (tensor<32x40xf64>) -> tensor<32x40xf64>
  func.return %4 : tensor<32x40xf64>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-5: graph.gemm
// CHECK-NOT: graph.matmul
// MISSED: its first factor is no sum
// MISSED: terms of its first factor overlap, or leave columns out
// MISSED: its parts are short, or of several lengths
// MISSED: the sum of its parts would be a step of its own
// MISSED: a term of its first factor is not padded with zeros
func.func @left_alone(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %c: tensor<32x192xf32>, %d: tensor<32x128xf32>, %w: tensor<128x40xf32>, %v: tensor<256x40xf32>)
    -> (tensor<32x40xf32>, tensor<32x40xf32>, tensor<32x40xf32>, tensor<32x40xf32>, tensor<32x40xf32>) {
  %first = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 64>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x128xf32>
  %again = graph.pad %b {low = array<i64: 0, 0>, high = array<i64: 0, 64>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x128xf32>
  %last = graph.pad %b {low = array<i64: 0, 64>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x128xf32>
  %short = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 192>, value = 0.0 : f64} : (tensor<32x64xf32>) -> tensor<32x256xf32>
  %long = graph.pad %c {low = array<i64: 0, 64>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<32x192xf32>) -> tensor<32x256xf32>
  %0 = graph.gemm %d, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x128xf32>, tensor<128x40xf32>) -> tensor<32x40xf32>
  %overlap = graph.add %first, %again : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %1 = graph.gemm %overlap, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x128xf32>, tensor<128x40xf32>) -> tensor<32x40xf32>
  %uneven = graph.add %short, %long : (tensor<32x256xf32>, tensor<32x256xf32>) -> tensor<32x256xf32>
  %2 = graph.gemm %uneven, %v {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x256xf32>, tensor<256x40xf32>) -> tensor<32x40xf32>
  %whole = graph.add %first, %last : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %3 = graph.gemm %whole, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x128xf32>, tensor<128x40xf32>) -> tensor<32x40xf32>
  %mixed = graph.add %first, %d : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %4 = graph.gemm %mixed, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<32x128xf32>, tensor<128x40xf32>) -> tensor<32x40xf32>
  func.return %0, %1, %2, %3, %4 : tensor<32x40xf32>, tensor<32x40xf32>, tensor<32x40xf32>, tensor<32x40xf32>, tensor<32x40xf32>
}

// Of so many rows there is work for all vEUs as it is.
// CHECK-LABEL: func.func @many_rows
// CHECK: graph.gemm
// MISSED: its results leave too few vEUs without work
func.func @many_rows(%a: tensor<20480x64xf32>, %b: tensor<20480x64xf32>, %w: tensor<128x40xf32>) -> tensor<20480x40xf32> {
  %0 = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 64>, value = 0.0 : f64} : (tensor<20480x64xf32>) -> tensor<20480x128xf32>
  %1 = graph.pad %b {low = array<i64: 0, 64>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<20480x64xf32>) -> tensor<20480x128xf32>
  %2 = graph.add %0, %1 : (tensor<20480x128xf32>, tensor<20480x128xf32>) -> tensor<20480x128xf32>
  %3 = graph.gemm %2, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64} : (tensor<20480x128xf32>, tensor<128x40xf32>) -> tensor<20480x40xf32>
  %4 = graph.tanh %3 : (tensor<20480x40xf32>) -> tensor<20480x40xf32>
  func.return %4 : tensor<20480x40xf32>
}
