// RUN: irkit-opt %s -p fold-batch-norm | filecheck %s
// RUN: irkit-opt %s -p fold-batch-norm,fold-batch-norm | filecheck %s

// factor = scale / sqrt(variance + 0) = [2, -4]; w' = factor * w; b' = factor * (b - mean) + bias
// CHECK-LABEL: func.func @after_conv
func.func @after_conv(%x: tensor<?x1x3x3xf32>) -> tensor<?x2x3x3xf32> {
  // CHECK-NEXT: %[[W:.*]] = arith.constant dense<{{\[\[\[\[}}2.000000e+00]]], {{\[\[\[}}-8.000000e+00]]]]> : tensor<2x1x1x1xf32>
  // CHECK-NEXT: %[[B:.*]] = arith.constant dense<[8.000000e+00, 3.000000e+00]> : tensor<2xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.conv %x, %[[W]], %[[B]] {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
  // CHECK-NEXT: func.return %[[Y]]
  %w = arith.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %b = arith.constant dense<[0.5, 1.0]> : tensor<2xf32>
  %scale = arith.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %bias = arith.constant dense<[7.0, 5.0]> : tensor<2xf32>
  %mean = arith.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %variance = arith.constant dense<0.25> : tensor<2xf32>
  %0 = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<?x1x3x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<?x2x3x3xf32>
  %y = graph.batch_norm %0, %scale, %bias, %mean, %variance {epsilon = 0.0 : f64} : (tensor<?x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2x3x3xf32>
  func.return %y : tensor<?x2x3x3xf32>
}

// CHECK-LABEL: func.func @conv_without_bias
func.func @conv_without_bias(%x: tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32> {
  // CHECK-NEXT: %[[W:.*]] = arith.constant dense<2.000000e+00> : tensor<1x1x1x1xf32>
  // CHECK-NEXT: %[[B:.*]] = arith.constant dense<1.000000e+00> : tensor<1xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.conv %x, %[[W]], %[[B]]
  // CHECK-NEXT: func.return %[[Y]]
  %w = arith.constant dense<4.0> : tensor<1x1x1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %zero = arith.constant dense<0.0> : tensor<1xf32>
  %variance = arith.constant dense<3.0> : tensor<1xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x3xf32>
  %y = graph.batch_norm %0, %one, %one, %zero, %variance {epsilon = 1.0 : f64} : (tensor<1x1x3x3xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x3x3xf32>
  func.return %y : tensor<1x1x3x3xf32>
}

// The convolution has another use, so only the normalisation itself is simplified.
// CHECK-LABEL: func.func @conv_used_twice
func.func @conv_used_twice(%x: tensor<1x1x3x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) {
  // CHECK: %[[C:.*]] = graph.conv
  // CHECK: %[[F:.*]] = arith.constant dense<2.000000e+00> : tensor<1x1x1xf32>
  // CHECK-NEXT: %[[O:.*]] = arith.constant dense<-3.000000e+00> : tensor<1x1x1xf32>
  // CHECK-NEXT: %[[P:.*]] = graph.mul %[[C]], %[[F]]
  // CHECK-NEXT: %[[Y:.*]] = graph.add %[[P]], %[[O]]
  // CHECK-NEXT: func.return %[[C]], %[[Y]]
  %w = arith.constant dense<4.0> : tensor<1x1x1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %mean = arith.constant dense<2.0> : tensor<1xf32>
  %variance = arith.constant dense<0.25> : tensor<1xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x3xf32>
  %y = graph.batch_norm %0, %one, %one, %mean, %variance {epsilon = 0.0 : f64} : (tensor<1x1x3x3xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x3x3xf32>
  func.return %0, %y : tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>
}

// CHECK-LABEL: func.func @alone
func.func @alone(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK: %[[P:.*]] = graph.mul %x, %{{.*}} : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.add %[[P]], %{{.*}} : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  // CHECK-NEXT: func.return %[[Y]]
  %one = arith.constant dense<1.0> : tensor<2xf32>
  %y = graph.batch_norm %x, %one, %one, %one, %one {epsilon = 0.0 : f64} : (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @unknown_scale
func.func @unknown_scale(%x: tensor<?x2xf32>, %scale: tensor<2xf32>) -> tensor<?x2xf32> {
  // CHECK: graph.batch_norm
  %one = arith.constant dense<1.0> : tensor<2xf32>
  %y = graph.batch_norm %x, %scale, %one, %one, %one {epsilon = 0.0 : f64} : (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}
