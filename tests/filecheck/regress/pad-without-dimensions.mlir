// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics | filecheck %s

// CHECK: func.return %x : tensor<f32>
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = graph.pad %x {low = array<i64>, high = array<i64>, value = 1.0 : f64} : (tensor<f32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
