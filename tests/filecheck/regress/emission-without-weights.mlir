// RUN: not irkit-opt %s -t 'numba{target=cpu}' --device=cpu2 2>&1 | filecheck %s
// CHECK: error: weight 'w' is not there

func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %0 = graph.add%x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %0 : tensor<?x4xf32>
}
