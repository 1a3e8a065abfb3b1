// RUN: irkit-opt %s -p quantise-products,fold-constants,dce | filecheck %s
// RUN: irkit-opt %s -p quantise-products,quantise-products,fold-constants,dce | filecheck %s

// The bias is of the products' scale; the quotient's scale is 0.5 * 0.25 / 4.
// CHECK-LABEL: func.func @conv
func.func @conv(%q: tensor<1x2x4x4xui8>, %r: tensor<3x2x1x1xi8>) -> tensor<1x3x4x4xf32> {
  // CHECK: %[[X:.*]] = graph.sub
  // CHECK: %[[W:.*]] = graph.cast %r {to = i32}
  // CHECK: %[[B:.*]] = arith.constant dense<[10, 20, -30]> : tensor<3xi32>
  // CHECK: %[[P:.*]] = graph.cast %[[X]] {to = i16}
  // CHECK: %[[A:.*]] = graph.cast %[[P]] {to = i32}
  // CHECK: %[[Q:.*]] = graph.cast %[[W]] {to = i16}
  // CHECK: %[[V:.*]] = graph.cast %[[Q]] {to = i32}
  // CHECK: %[[S:.*]] = graph.conv %[[A]], %[[V]], %[[B]] {{.*}} -> tensor<1x3x4x4xi32>
  // CHECK: %[[F:.*]] = graph.cast %[[S]] {to = f32}
  // CHECK: %[[T:.*]] = arith.constant dense<3.125000e-02> : tensor<f32>
  // CHECK: %[[M:.*]] = graph.mul %[[F]], %[[T]]
  // CHECK: graph.round %[[M]]
  %0 = graph.cast %q {to = i32} : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xi32>
  %zero = arith.constant dense<7> : tensor<i32>
  %1 = graph.sub %0, %zero : (tensor<1x2x4x4xi32>, tensor<i32>) -> tensor<1x2x4x4xi32>
  %2 = graph.cast %1 {to = f32} : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xf32>
  %sx = arith.constant dense<0.5> : tensor<f32>
  %x = graph.mul %2, %sx : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %3 = graph.cast %r {to = i32} : (tensor<3x2x1x1xi8>) -> tensor<3x2x1x1xi32>
  %4 = graph.cast %3 {to = f32} : (tensor<3x2x1x1xi32>) -> tensor<3x2x1x1xf32>
  %sw = arith.constant dense<0.25> : tensor<f32>
  %w = graph.mul %4, %sw : (tensor<3x2x1x1xf32>, tensor<f32>) -> tensor<3x2x1x1xf32>
  %b32 = arith.constant dense<[10, 20, -30]> : tensor<3xi32>
  %5 = graph.cast %b32 {to = f32} : (tensor<3xi32>) -> tensor<3xf32>
  %sb = arith.constant dense<0.125> : tensor<f32>
  %b = graph.mul %5, %sb : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %6 = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>
  %sy = arith.constant dense<4.0> : tensor<f32>
  %7 = graph.div %6, %sy : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x4x4xf32>
  %y = graph.round %7 : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  func.return %y : tensor<1x3x4x4xf32>
}

// Scales of columns; nothing is quantised behind, and the bias is no integer.
// CHECK-LABEL: func.func @gemm
func.func @gemm(%q: tensor<2x4xui8>, %r: tensor<3x4xi8>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK: %[[S:.*]] = graph.gemm %{{.*}}, %{{.*}} {trans_a = false, trans_b = true, {{.*}} -> tensor<2x3xi32>
  // CHECK: %[[F:.*]] = graph.cast %[[S]] {to = f32}
  // CHECK: %[[T:.*]] = arith.constant dense<[5.000000e-01, 1.000000e+00, 2.000000e+00]> : tensor<3xf32>
  // CHECK: %[[M:.*]] = graph.mul %[[F]], %[[T]]
  // CHECK: graph.add %[[M]], %b
  %0 = graph.cast %q {to = i32} : (tensor<2x4xui8>) -> tensor<2x4xi32>
  %1 = graph.cast %0 {to = f32} : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %sx = arith.constant dense<0.5> : tensor<f32>
  %x = graph.mul %1, %sx : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %2 = graph.cast %r {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %3 = graph.cast %2 {to = f32} : (tensor<3x4xi32>) -> tensor<3x4xf32>
  %sw = arith.constant dense<[[1.0], [2.0], [4.0]]> : tensor<3x1xf32>
  %w = graph.mul %3, %sw : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// A scale that differs along what is summed over, and sums that might leave 32 bits.
// CHECK-LABEL: func.func @stays
func.func @stays(%q: tensor<2x4xui8>, %r: tensor<4x3xi8>, %u: tensor<1x40000xui8>, %v: tensor<40000x1xui8>) -> (tensor<2x3xf32>, tensor<1x1xf32>) {
  // CHECK: graph.matmul {{.*}} -> tensor<2x3xf32>
  // CHECK: graph.matmul {{.*}} -> tensor<1x1xf32>
  %0 = graph.cast %q {to = i32} : (tensor<2x4xui8>) -> tensor<2x4xi32>
  %1 = graph.cast %0 {to = f32} : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %sx = arith.constant dense<0.5> : tensor<f32>
  %x = graph.mul %1, %sx : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %2 = graph.cast %r {to = i32} : (tensor<4x3xi8>) -> tensor<4x3xi32>
  %3 = graph.cast %2 {to = f32} : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %sw = arith.constant dense<[[1.0], [2.0], [4.0], [8.0]]> : tensor<4x1xf32>
  %w = graph.mul %3, %sw : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  %y = graph.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %4 = graph.cast %u {to = i32} : (tensor<1x40000xui8>) -> tensor<1x40000xi32>
  %5 = graph.cast %4 {to = f32} : (tensor<1x40000xi32>) -> tensor<1x40000xf32>
  %6 = graph.mul %5, %sx : (tensor<1x40000xf32>, tensor<f32>) -> tensor<1x40000xf32>
  %7 = graph.cast %v {to = i32} : (tensor<40000x1xui8>) -> tensor<40000x1xi32>
  %8 = graph.cast %7 {to = f32} : (tensor<40000x1xi32>) -> tensor<40000x1xf32>
  %9 = graph.mul %8, %sx : (tensor<40000x1xf32>, tensor<f32>) -> tensor<40000x1xf32>
  %z = graph.matmul %6, %9 : (tensor<1x40000xf32>, tensor<40000x1xf32>) -> tensor<1x1xf32>
  func.return %y, %z : tensor<2x3xf32>, tensor<1x1xf32>
}

// Constant filters: their sums times the zero point are in the bias, and the zero point is what pads.
// CHECK-LABEL: func.func @filters
func.func @filters(%q: tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xi32> {
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<[-11, 27]> : tensor<2xi32>
  // CHECK-DAG: %[[P:.*]] = graph.pad %q {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 0, 1>, value = 7.000000e+00 : f64}
  // CHECK-DAG: %[[X:.*]] = graph.cast %[[P]] {to = i32}
  // CHECK: graph.conv %[[X]], %{{.*}}, %[[B]] {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>
  // CHECK-NEXT: func.return
  %w = arith.constant dense<[[[[1, 2], [0, 0]], [[0, 0], [0, 0]]], [[[-1, 0], [0, 0]], [[0, 0], [0, -1]]]]> : tensor<2x2x2x2xi8>
  %0 = graph.cast %q {to = i32} : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xi32>
  %zero = arith.constant dense<7> : tensor<i32>
  %1 = graph.sub %0, %zero : (tensor<1x2x4x4xi32>, tensor<i32>) -> tensor<1x2x4x4xi32>
  %2 = graph.cast %w {to = i32} : (tensor<2x2x2x2xi8>) -> tensor<2x2x2x2xi32>
  %b = arith.constant dense<[10, 13]> : tensor<2xi32>
  %y = graph.conv %1, %2, %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<1x2x4x4xi32>, tensor<2x2x2x2xi32>, tensor<2xi32>) -> tensor<1x2x4x4xi32>
  func.return %y : tensor<1x2x4x4xi32>
}

// Both factors come from outside: sums of one times the other's zero point, and the zero points' product.
// CHECK-LABEL: func.func @both
func.func @both(%a: tensor<2x4xui8>, %c: tensor<4x3xi8>) -> tensor<2x3xi32> {
  // CHECK: %[[Y:.*]] = graph.matmul
  // CHECK: graph.reduce %{{.*}} {kind = "sum", axes = array<i64: 0>, keepdims = true}
  // CHECK: graph.reduce %{{.*}} {kind = "sum", axes = array<i64: 1>, keepdims = true}
  // CHECK: arith.constant dense<-60> : tensor<i32>
  // CHECK: graph.sub %[[Y]]
  // CHECK: graph.sub
  // CHECK: graph.sub
  %0 = graph.cast %a {to = i32} : (tensor<2x4xui8>) -> tensor<2x4xi32>
  %s = arith.constant dense<3> : tensor<i32>
  %1 = graph.sub %0, %s : (tensor<2x4xi32>, tensor<i32>) -> tensor<2x4xi32>
  %2 = graph.cast %c {to = i32} : (tensor<4x3xi8>) -> tensor<4x3xi32>
  %t = arith.constant dense<5> : tensor<i32>
  %3 = graph.sub %2, %t : (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>
  %y = graph.matmul %1, %3 : (tensor<2x4xi32>, tensor<4x3xi32>) -> tensor<2x3xi32>
  func.return %y : tensor<2x3xi32>
}

// The largest byte is the largest number, where the scale is positive.
// CHECK-LABEL: func.func @pool
func.func @pool(%q: tensor<1x2x4x4xui8>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) {
  // CHECK: %[[P:.*]] = graph.max_pool %q
  // CHECK: %[[I:.*]] = graph.cast %[[P]] {to = i32}
  // CHECK: %[[S:.*]] = graph.sub %[[I]]
  // CHECK: graph.cast %[[S]] {to = f32}
  // CHECK: graph.max_pool {{.*}} -> tensor<1x2x2x2xf32>
  %0 = graph.cast %q {to = i32} : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xi32>
  %zero = arith.constant dense<7> : tensor<i32>
  %1 = graph.sub %0, %zero : (tensor<1x2x4x4xi32>, tensor<i32>) -> tensor<1x2x4x4xi32>
  %2 = graph.cast %1 {to = f32} : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xf32>
  %s = arith.constant dense<0.5> : tensor<f32>
  %t = arith.constant dense<-0.5> : tensor<f32>
  %x = graph.mul %2, %s : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %z = graph.mul %2, %t : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %y = graph.max_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %w = graph.max_pool %z {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  func.return %y, %w : tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>
}
