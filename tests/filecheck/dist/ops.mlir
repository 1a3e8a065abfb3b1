// What the ranks of a group do together: each op in its own form.
// RUN: irkit-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<i64>, tensor<2x4xf32>, tensor<4xf32>, tensor<i64>, tensor<i64>) {
  // CHECK-NEXT: %mean = dist.all_reduce %x {kind = "mean"} : (tensor<4xf32>) -> tensor<4xf32>
  %mean = dist.all_reduce %x {kind = "mean"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %most = dist.all_reduce %n {kind = "max"} : (tensor<i64>) -> tensor<i64>
  %most = dist.all_reduce %n {kind = "max"} : (tensor<i64>) -> tensor<i64>
  // CHECK-NEXT: %all = dist.all_gather %x {size = 2 : i64} : (tensor<4xf32>) -> tensor<2x4xf32>
  %all = dist.all_gather %x {size = 2 : i64} : (tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: %first = dist.broadcast %x {root = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %first = dist.broadcast %x {root = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %rank = dist.rank : tensor<i64>
  %rank = dist.rank : tensor<i64>
  // CHECK-NEXT: %size = dist.size : tensor<i64>
  %size = dist.size : tensor<i64>
  func.return %mean, %most, %all, %first, %rank, %size : tensor<4xf32>, tensor<i64>, tensor<2x4xf32>, tensor<4xf32>, tensor<i64>, tensor<i64>
}
