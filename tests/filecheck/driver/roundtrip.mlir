// RUN: irkit-opt %s --verify-roundtrip --mlir-print-op-generic | filecheck %s

// CHECK: "arith.constant"() <{value = dense_resource<w> : tensor<4xf32>}>
// CHECK: "graph.add"
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // Reading the module again must not rename the weight.
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %0 = graph.add %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %0 : tensor<?x4xf32>
}
