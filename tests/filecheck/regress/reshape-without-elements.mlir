// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics | filecheck %s
// RUN: not irkit-opt %s --to=schedule --device=test4 2>&1 | filecheck %s --check-prefix=REFUSED
// A reshape of nothing is an empty tensor; no schedule has one.

// CHECK:   tensor.empty() : tensor<3x0x2xf32>
// REFUSED: error: pass 'form-roperators' failed: input 0 of @main: a tensor without elements, tensor<0x3xf32>
func.func @main(%x: tensor<0x3xf32>) -> tensor<3x0x2xf32> {
  %0 = graph.reshape %x {shape = array<i64: 3, 0, 2>} : (tensor<0x3xf32>) -> tensor<3x0x2xf32>
  func.return %0 : tensor<3x0x2xf32>
}
