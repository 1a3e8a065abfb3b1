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
