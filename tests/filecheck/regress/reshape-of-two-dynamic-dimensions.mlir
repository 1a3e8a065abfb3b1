// RUN: not irkit-opt %s -p convert-graph-to-tensor 2>&1 | filecheck %s

// CHECK: error: pass 'convert-graph-to-tensor' failed: reshape of ?x? to ?x1x?: a dynamic dimension that does not lead
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x1x?xf32> {
  %0 = graph.reshape %x {shape = array<i64: -9223372036854775808, 1, -9223372036854775808>} : (tensor<?x?xf32>) -> tensor<?x1x?xf32>
  func.return %0 : tensor<?x1x?xf32>
}
