// RUN: irkit-opt %s -p 'convert-graph-to-tensor,form-roperators' --check-semantics | filecheck %s
// Without `dce` before it, form-roperators meets ops that nobody needs: no rOperator is without results.

// CHECK-COUNT-1: task.launch
// CHECK-NOT:     task.launch
// CHECK:         func.return
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = graph.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1, %2 = graph.top_k %0 {k = 2 : i64, axis = 1 : i64, largest = true} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %3 = graph.exp %1 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %0 : tensor<2x4xf32>
}
