// RUN: not irkit-opt %s -p set-precision{precision=half} 2>&1 | filecheck %s
// RUN: not irkit-opt %s --to tensor 2>&1 | filecheck %s --check-prefix=PLACE

// CHECK: error: pass 'set-precision' failed: precision=half: expected float32, ieee, tf32, bf16, f16
// PLACE: but 'graph.relu' has 'irkit.precision', but is no contraction of f32
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = graph.relu %x {irkit.precision = "tf32"} : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
