// RUN: not irkit-opt %s -p convert-graph-to-tensor 2>&1 | filecheck %s

func.func @main(%x: tensor<2x1x3xf32>, %h: tensor<1x4xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<2x1x4xf32> {
  %y, %z = graph.rnn %x, %h, %w, %r, %b : (tensor<2x1x3xf32>, tensor<1x4xf32>, tensor<4x3xf32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<2x1x4xf32>, tensor<1x4xf32>)
  return %y : tensor<2x1x4xf32>
}
// CHECK: error: {{.*}}'graph.rnn' has no tensor-level form: run unroll-recurrence first
