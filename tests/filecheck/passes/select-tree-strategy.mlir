// RUN: irkit-opt %s -p select-tree-strategy --split-input-file --check-semantics | filecheck %s
// RUN: irkit-opt %s -p select-tree-strategy,select-tree-strategy --split-input-file | filecheck %s
// RUN: irkit-opt %s -p 'select-tree-strategy{strategy=gemm}' --split-input-file | filecheck %s --check-prefix=GEMM
// RUN: not irkit-opt %s -p 'select-tree-strategy{strategy=fastest}' --split-input-file 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: not irkit-opt %s -p 'select-tree-strategy{strategy=auto}' --split-input-file 2>&1 | filecheck %s --check-prefix=AUTO

// WRONG: argument 'strategy' of pass 'select-tree-strategy': expected one of walk, gemm, traversal, perfect_traversal, got 'fastest'
// AUTO: expected one of walk, gemm, traversal, perfect_traversal, got 'auto'

// CHECK: graph.forest {{.*}} strategy = "walk"}
// GEMM: graph.forest {{.*}} strategy = "gemm"}
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %y : tensor<?x1xf64>
}

// -----

// What is decided stays.
// CHECK: graph.forest {{.*}} strategy = "perfect_traversal"}
// GEMM: graph.forest {{.*}} strategy = "perfect_traversal"}
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "perfect_traversal"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %y : tensor<?x1xf64>
}
