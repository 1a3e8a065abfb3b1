// RUN: irkit-run %s --level=schedule --device=test4 --seed=1 | filecheck %s

// CHECK: output0: float32[]
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = graph.abs %x : (tensor<f32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
