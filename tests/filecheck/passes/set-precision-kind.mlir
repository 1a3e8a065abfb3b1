// RUN: not irkit-opt %s --to tensor 2>&1 | filecheck %s

// CHECK: but 'graph.matmul' says no precision: 'irkit.precision' is "half"; expected float32, ieee, tf32, bf16, f16
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = graph.matmul %x, %x {irkit.precision = "half"} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %y : tensor<8x8xf32>
}
