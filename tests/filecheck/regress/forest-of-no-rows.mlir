// RUN: irkit-opt %s -p tree-to-gemm --check-semantics | filecheck %s
// Its columns cannot be cut out of x: it stays a forest.

// CHECK: graph.forest
func.func @main(%x: tensor<0x2xf32>) -> tensor<0x1xf32> {
  %feature = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %threshold = arith.constant dense<[0.5, 0.0, 0.0]> : tensor<3xf32>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan = arith.constant dense<[false, false, false]> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf32>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %output = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.0]> : tensor<1xf32>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan, %value, %root, %output, %base
      {comparison = "le", depth = 1 : i64, strategy = "gemm"}
    : (tensor<0x2xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>,
       tensor<3x1xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xf32>) -> tensor<0x1xf32>
  func.return %y : tensor<0x1xf32>
}
