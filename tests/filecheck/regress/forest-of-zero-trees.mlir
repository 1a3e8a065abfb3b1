// RUN: not irkit-opt %s --to=task --device=cpu2 2>&1 | filecheck %s

// CHECK: error: pass 'convert-graph-to-tensor' failed: 'graph.forest' of no trees: its result is its base
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<0> : tensor<1xi32>
  %threshold = arith.constant dense<0.0> : tensor<1xf32>
  %nan_left = arith.constant dense<false> : tensor<1xi1>
  %value = arith.constant dense<0.0> : tensor<1x1xf64>
  %root = arith.constant dense<0> : tensor<0xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %feature, %feature, %nan_left, %value, %root, %root, %base {comparison = "le", depth = 12 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<1xi32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi1>, tensor<1x1xf64>, tensor<0xi32>, tensor<0xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
