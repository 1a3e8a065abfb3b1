// RUN: not irkit-opt %s -p convert-graph-to-tensor 2>&1 | filecheck %s
// CHECK: error: pass 'convert-graph-to-tensor' failed: graph.forest whose arrays are no trees: expected child 0 to 5, got 7

func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 7]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
