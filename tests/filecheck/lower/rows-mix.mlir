// RUN: not irkit-opt %s -p convert-graph-to-tensor 2>&1 | filecheck %s
// RUN: irkit-opt %s -p 'specialise-batch{size=2},convert-graph-to-tensor' | filecheck %s --check-prefix=SIZE

// Every op at which rows mix is named, but none behind it.
// CHECK: pass 'convert-graph-to-tensor' failed: @main has no program for every batch size, as rows of the batch mix:
// CHECK-NEXT: 'graph.softmax' (%p): it works along dimension 0, which is the batch
// CHECK-NEXT: 'graph.reduce' (%m): max over dimension 0, which is the batch
// CHECK-NEXT: fix the batch size: irkit.compile(..., batch=N), shapes={...} of an ONNX model, or the pass specialise-batch{size=N} of 'rows'
// SIZE: te.softmax
func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>) attributes {irkit.dims = [["rows"]]} {
  %p = graph.softmax %x {axis = 0 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %q = graph.softmax %p {axis = 0 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %m = graph.reduce %x {kind = "max", axes = array<i64: 0>, keepdims = false} : (tensor<?x4xf32>) -> tensor<4xf32>
  func.return %q, %m : tensor<?x4xf32>, tensor<4xf32>
}
