// RUN: irkit-opt %s -p 'write-out-attention{device="cpu2"},canonicalize,cse,dce' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p 'write-out-attention{device="h200"},write-out-attention,cse,dce' | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -p 'write-out-attention{device="cpu2"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=OPEN

// The attention and both gradients share the weights.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: graph.softmax
// CHECK-NOT: graph.softmax
// CHECK-NOT: graph.attention
// GPU-LABEL: func.func @main
// GPU: graph.attention
// GPU: graph.attention_query_gradient
// GPU: graph.attention_key_gradient
func.func @main(%q: tensor<2x4x3xf32>, %k: tensor<2x5x3xf32>, %v: tensor<2x5x2xf32>, %c: tensor<2x4x2xf32>) -> (tensor<2x4x2xf32>, tensor<2x4x3xf32>, tensor<2x5x3xf32>, tensor<2x5x2xf32>) {
  %y = graph.attention %q, %k, %v {scale = 0.5 : f64, causal = 1 : i64} : (tensor<2x4x3xf32>, tensor<2x5x3xf32>, tensor<2x5x2xf32>) -> tensor<2x4x2xf32>
  %s = graph.attention_query_gradient %q, %k, %v, %c {scale = 0.5 : f64, causal = 1 : i64} : (tensor<2x4x3xf32>, tensor<2x5x3xf32>, tensor<2x5x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x5xf32>
  %t = graph.attention_key_gradient %q, %k, %v, %c, %s {scale = 0.5 : f64, causal = 1 : i64} : (tensor<2x4x3xf32>, tensor<2x5x3xf32>, tensor<2x5x2xf32>, tensor<2x4x2xf32>, tensor<2x4x5xf32>) -> tensor<2x5x5xf32>
  %0 = graph.slice %s {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 2, 4, 3>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x5xf32>) -> tensor<2x4x3xf32>
  %1 = graph.slice %t {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 2, 5, 3>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x5xf32>) -> tensor<2x5x3xf32>
  %2 = graph.slice %t {offsets = array<i64: 0, 0, 3>, sizes = array<i64: 2, 5, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x5xf32>) -> tensor<2x5x2xf32>
  func.return %y, %0, %1, %2 : tensor<2x4x2xf32>, tensor<2x4x3xf32>, tensor<2x5x3xf32>, tensor<2x5x2xf32>
}

// What is read as a whole is put together again.
// CHECK-LABEL: func.func @whole
// CHECK: graph.concat
// CHECK: graph.concat
// CHECK-NOT: graph.attention
func.func @whole(%q: tensor<4x3xf64>, %k: tensor<5x3xf64>, %v: tensor<5x2xf64>, %c: tensor<4x2xf64>, %m: tensor<4x5xi1>) -> (tensor<4x5xf64>, tensor<5x5xf64>) {
  %s = graph.attention_query_gradient %q, %k, %v, %c, %m {scale = 0.5 : f64} : (tensor<4x3xf64>, tensor<5x3xf64>, tensor<5x2xf64>, tensor<4x2xf64>, tensor<4x5xi1>) -> tensor<4x5xf64>
  %t = graph.attention_key_gradient %q, %k, %v, %c, %s, %m {scale = 0.5 : f64} : (tensor<4x3xf64>, tensor<5x3xf64>, tensor<5x2xf64>, tensor<4x2xf64>, tensor<4x5xf64>, tensor<4x5xi1>) -> tensor<5x5xf64>
  func.return %s, %t : tensor<4x5xf64>, tensor<5x5xf64>
}

// OPEN: an extent is open
// CHECK-LABEL: func.func @open
// CHECK: graph.attention_query_gradient
func.func @open(%q: tensor<?x4x3xf32>, %k: tensor<1x5x3xf32>, %c: tensor<?x4x3xf32>) -> tensor<?x4x5xf32> {
  %s = graph.attention_query_gradient %q, %k, %k, %c {scale = 0.5 : f64} : (tensor<?x4x3xf32>, tensor<1x5x3xf32>, tensor<1x5x3xf32>, tensor<?x4x3xf32>) -> tensor<?x4x5xf32>
  func.return %s : tensor<?x4x5xf32>
}
