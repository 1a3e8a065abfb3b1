// RUN: not irkit-opt %s -p convert-graph-to-tensor 2>&1 | filecheck %s

func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %y = graph.pow %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}
// CHECK: error: {{.*}}'graph.pow' on elements of i32 has no tensor-level form
