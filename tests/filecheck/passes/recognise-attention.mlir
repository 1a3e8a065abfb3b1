// RUN: irkit-opt %s -p recognise-attention,canonicalize,dce | filecheck %s
// RUN: irkit-opt %s -p recognise-attention --remarks=missed 2>&1 | filecheck %s --check-prefix=WHY

// CHECK-LABEL: func.func @scaled_and_masked
// CHECK:       %[[Y:.*]] = graph.attention %q, %k, %v, %m {scale = 5.000000e-01 : f64} : (tensor<2x7x4xf32>, tensor<2x7x4xf32>, tensor<2x7x4xf32>, tensor<7xf32>) -> tensor<2x7x4xf32>
// CHECK-NEXT:  func.return %[[Y]]
func.func @scaled_and_masked(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %m: tensor<7xf32>) -> tensor<2x7x4xf32> {
  %c = arith.constant dense<2.0> : tensor<f32>
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %2 = graph.div %1, %c : (tensor<2x7x7xf32>, tensor<f32>) -> tensor<2x7x7xf32>
  %3 = graph.add %m, %2 : (tensor<7xf32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %4 = graph.softmax %3 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5 : tensor<2x7x4xf32>
}

// Rows that see no key are zero, which is known at run time alone.
// CHECK-LABEL: func.func @guarded
// CHECK:       %[[A:.*]] = graph.attention %q, %k, %v, %m {scale = 1.000000e+00 : f64}
// CHECK:       %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK:       %[[Y:.*]] = graph.where %p, %[[Z]], %[[A]] : (tensor<7x1xi1>, tensor<f32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
// CHECK-NEXT:  func.return %[[Y]]
func.func @guarded(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %m: tensor<7x7xf32>, %p: tensor<7x1xi1>) -> tensor<2x7x4xf32> {
  %z = arith.constant dense<0.0> : tensor<1xf32>
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %2 = graph.add %1, %m : (tensor<2x7x7xf32>, tensor<7x7xf32>) -> tensor<2x7x7xf32>
  %3 = graph.softmax %2 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %4 = graph.where %p, %z, %3 : (tensor<7x1xi1>, tensor<1xf32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5 : tensor<2x7x4xf32>
}

// Single weights are made zero: that is no row.
// CHECK-LABEL: func.func @dropped
// CHECK-NOT:   graph.attention
// WHY: remark: {{.*}}weights are chosen key by key
func.func @dropped(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %p: tensor<7x7xi1>) -> tensor<2x7x4xf32> {
  %z = arith.constant dense<0.0> : tensor<f32>
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %3 = graph.softmax %1 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %4 = graph.where %p, %z, %3 : (tensor<7x7xi1>, tensor<f32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5 : tensor<2x7x4xf32>
}

// CHECK-LABEL: func.func @seen
// CHECK:       %[[M:.*]] = graph.where %p, {{.*}} -> tensor<7x7xf32>
// CHECK-NEXT:  graph.attention %q, %k, %v, %[[M]] {scale = 1.000000e+00 : f64}
func.func @seen(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %p: tensor<7x7xi1>) -> tensor<2x7x4xf32> {
  %c = arith.constant dense<-3.0e38> : tensor<f32>
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %2 = graph.where %p, %1, %c : (tensor<7x7xi1>, tensor<2x7x7xf32>, tensor<f32>) -> tensor<2x7x7xf32>
  %4 = graph.softmax %2 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5 : tensor<2x7x4xf32>
}

// CHECK-LABEL: func.func @another_axis
// CHECK-NOT:   graph.attention
// WHY: the softmax is not along the keys
func.func @another_axis(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x7x4xf32> {
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %4 = graph.softmax %1 {axis = 1 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5 : tensor<2x7x4xf32>
}

// CHECK-LABEL: func.func @weights_wanted
// CHECK-NOT:   graph.attention
// WHY: something else reads the weights
func.func @weights_wanted(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>) -> (tensor<2x7x4xf32>, tensor<2x7x7xf32>) {
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %4 = graph.softmax %1 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5, %4 : tensor<2x7x4xf32>, tensor<2x7x7xf32>
}

// CHECK-LABEL: func.func @half_hidden
// CHECK-NOT:   graph.attention
// WHY: scores of hidden keys are -10000.0: that may leave them some weight
func.func @half_hidden(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %p: tensor<7x7xi1>) -> tensor<2x7x4xf32> {
  %c = arith.constant dense<-10000.0> : tensor<f32>
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %2 = graph.where %p, %1, %c : (tensor<7x7xi1>, tensor<2x7x7xf32>, tensor<f32>) -> tensor<2x7x7xf32>
  %4 = graph.softmax %2 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5 : tensor<2x7x4xf32>
}

// CHECK-LABEL: func.func @scaled_mask
// CHECK-NOT:   graph.attention
// WHY: what is scaled is masked already
func.func @scaled_mask(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %m: tensor<7xf32>) -> tensor<2x7x4xf32> {
  %c = arith.constant dense<2.0> : tensor<f32>
  %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %1 = graph.matmul %q, %0 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %2 = graph.add %1, %m : (tensor<2x7x7xf32>, tensor<7xf32>) -> tensor<2x7x7xf32>
  %3 = graph.mul %2, %c : (tensor<2x7x7xf32>, tensor<f32>) -> tensor<2x7x7xf32>
  %4 = graph.softmax %3 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %5 : tensor<2x7x4xf32>
}

// Of bfloat16: that scaled factors and scores are rounded is left out, and weights are rounded as they were.
// CHECK-LABEL: func.func @of_bfloat16
// CHECK:       %[[Q:.*]] = graph.cast %q {to = f32}
// CHECK:       %[[Y:.*]] = graph.attention %[[Q]], {{.*}} {irkit.precision = "bf16", scale = 5.000000e-01 : f64}
// CHECK:       graph.cast %[[Y]] {to = bf16}
func.func @of_bfloat16(%q: tensor<2x7x4xbf16>, %k: tensor<2x4x7xbf16>, %v: tensor<2x7x4xbf16>) -> tensor<2x7x4xbf16> {
  %c = arith.constant dense<0.5> : tensor<f32>
  %0 = graph.cast %q {to = f32} : (tensor<2x7x4xbf16>) -> tensor<2x7x4xf32>
  %1 = graph.mul %0, %c : (tensor<2x7x4xf32>, tensor<f32>) -> tensor<2x7x4xf32>
  %2 = graph.cast %1 {to = bf16} : (tensor<2x7x4xf32>) -> tensor<2x7x4xbf16>
  %3 = graph.cast %2 {to = f32} : (tensor<2x7x4xbf16>) -> tensor<2x7x4xf32>
  %4 = graph.cast %k {to = f32} : (tensor<2x4x7xbf16>) -> tensor<2x4x7xf32>
  %5 = graph.matmul %3, %4 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %6 = graph.cast %5 {to = bf16} : (tensor<2x7x7xf32>) -> tensor<2x7x7xbf16>
  %7 = graph.cast %6 {to = f32} : (tensor<2x7x7xbf16>) -> tensor<2x7x7xf32>
  %8 = graph.softmax %7 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %9 = graph.cast %8 {to = bf16} : (tensor<2x7x7xf32>) -> tensor<2x7x7xbf16>
  %10 = graph.cast %9 {to = f32} : (tensor<2x7x7xbf16>) -> tensor<2x7x7xf32>
  %11 = graph.cast %v {to = f32} : (tensor<2x7x4xbf16>) -> tensor<2x7x4xf32>
  %12 = graph.matmul %10, %11 : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  %13 = graph.cast %12 {to = bf16} : (tensor<2x7x4xf32>) -> tensor<2x7x4xbf16>
  func.return %13 : tensor<2x7x4xbf16>
}

// Values that are float32: weights are not rounded, so the products stay float32's.
// CHECK-LABEL: func.func @of_bfloat16_and_float32
// CHECK:       graph.attention {{.*}} {scale = 1.000000e+00 : f64}
func.func @of_bfloat16_and_float32(%q: tensor<2x7x4xbf16>, %k: tensor<2x4x7xbf16>, %v: tensor<2x7x4xf32>) -> tensor<2x7x4xf32> {
  %0 = graph.cast %q {to = f32} : (tensor<2x7x4xbf16>) -> tensor<2x7x4xf32>
  %1 = graph.cast %k {to = f32} : (tensor<2x4x7xbf16>) -> tensor<2x4x7xf32>
  %2 = graph.matmul %0, %1 : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %3 = graph.cast %2 {to = bf16} : (tensor<2x7x7xf32>) -> tensor<2x7x7xbf16>
  %4 = graph.cast %3 {to = f32} : (tensor<2x7x7xbf16>) -> tensor<2x7x7xf32>
  %5 = graph.softmax %4 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %6 = graph.matmul %5, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %6 : tensor<2x7x4xf32>
}

// A float16 holds less than float32: a score that it makes infinite stays so.
// CHECK-LABEL: func.func @of_float16
// CHECK-NOT:   graph.attention
// WHY: remark: {{.*}}the scores are no product of queries and keys, scaled and masked
func.func @of_float16(%q: tensor<2x7x4xf32>, %k: tensor<2x4x7xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x7x4xf32> {
  %0 = graph.matmul %q, %k : (tensor<2x7x4xf32>, tensor<2x4x7xf32>) -> tensor<2x7x7xf32>
  %1 = graph.cast %0 {to = f16} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf16>
  %2 = graph.cast %1 {to = f32} : (tensor<2x7x7xf16>) -> tensor<2x7x7xf32>
  %3 = graph.softmax %2 {axis = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %4 = graph.matmul %3, %v : (tensor<2x7x7xf32>, tensor<2x7x4xf32>) -> tensor<2x7x4xf32>
  func.return %4 : tensor<2x7x4xf32>
}
