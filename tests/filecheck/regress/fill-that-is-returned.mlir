// RUN: irkit-opt %s --to=schedule --device=cpu2 --check-semantics | filecheck %s
// An output that is a fill has a launch that writes it.

// CHECK: task.append @map_0
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.fill ins(%one : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
