// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics --split-input-file | filecheck %s

// Two trees: a node whose right child is a leaf, and a lone leaf. Below a leaf its value is repeated.
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
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x4xf32>)
// CHECK:         arith.constant dense<{{\[\[}}3, 1, 0], [0, 0, 0]]> : tensor<2x3xi32>
// CHECK:         arith.constant dense<{{\[\[\[}}1.000000e+00], [2.000000e+00], [3.000000e+00], [3.000000e+00]], {{\[\[}}4.000000e+00], [4.000000e+00], [4.000000e+00], [4.000000e+00]]]> : tensor<2x4x1xf64>
// CHECK:         %y = te.perfect_forest %x, {{.*}} {comparison = "le", depth = 2 : i64}

// -----

// Two trees of which all nodes of a level are alike: one of two levels, and one of one, below which nothing is asked.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[3, 1, 1, 0, 0, 0, 0, 2, 0, 0]> : tensor<10xi32>
  %threshold = arith.constant dense<[0.5, -0.5, -0.5, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]> : tensor<10xf32>
  %left = arith.constant dense<[1, 3, 5, 3, 4, 5, 6, 8, 8, 9]> : tensor<10xi32>
  %right = arith.constant dense<[2, 4, 6, 3, 4, 5, 6, 9, 8, 9]> : tensor<10xi32>
  %nan_left = arith.constant dense<[false, true, true, false, false, false, false, true, false, false]> : tensor<10xi1>
  %value = arith.constant dense<[[0.0], [0.0], [0.0], [1.0], [2.0], [3.0], [4.0], [0.0], [5.0], [6.0]]> : tensor<10x1xf64>
  %root = arith.constant dense<[0, 7]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x4xf32>)
// CHECK:         arith.constant dense<{{\[\[}}3, 1, 1], [2, 0, 0]]> : tensor<2x3xi32>
// CHECK:         %y = te.perfect_forest %x, {{.*}} {comparison = "le", depth = 2 : i64, symmetric}

// -----

// Trees that are not known are walked by child pointers; a walk has one step at least.
func.func @main(%x: tensor<?x4xf32>, %feature: tensor<1xi32>, %threshold: tensor<1xf32>, %left: tensor<1xi32>, %nan_left: tensor<1xi1>, %value: tensor<1x1xf64>, %base: tensor<1xf64>) -> tensor<?x1xf64> {
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %y = graph.forest %x, %feature, %threshold, %root, %root, %nan_left, %value, %root, %root, %base {comparison = "lt", depth = 0 : i64, strategy = "walk"}
    : (tensor<?x4xf32>, tensor<1xi32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi1>, tensor<1x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x4xf32>, %feature
// CHECK:         %y = te.forest %x, {{.*}} {comparison = "lt", depth = 1 : i64, strategy = "walk"}

// -----

// Deep trees, which padding would make large, are put in order: the root, inner nodes, leaves.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2]> : tensor<23xi32>
  %threshold = arith.constant dense<[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]> : tensor<23xf32>
  %left = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]> : tensor<23xi32>
  %right = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]> : tensor<23xi32>
  %nan_left = arith.constant dense<false> : tensor<23xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0], [11.0], [12.0], [13.0], [14.0], [15.0], [16.0], [17.0], [18.0], [19.0], [20.0], [21.0], [22.0]]> : tensor<23x1xf64>
  %root = arith.constant dense<[22]> : tensor<1xi32>
  %output = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "lt", depth = 11 : i64, strategy = "walk"}
    : (tensor<?x4xf32>, tensor<23xi32>, tensor<23xf32>, tensor<23xi32>, tensor<23xi32>, tensor<23xi1>, tensor<23x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x4xf32>)
// CHECK:         arith.constant dense<0> : tensor<1xi32>
// CHECK:         %y = te.forest %x, {{.*}} {comparison = "lt", depth = 11 : i64, strategy = "walk", leaves = 12 : i64}

// -----

// Nothing is below -inf: what is missing could not be made left of it. Such trees are walked,
// node by node of 16 bytes.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2]> : tensor<23xi32>
  %threshold = arith.constant dense<"0x000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000080FF0000803F0000004000004040000080400000A0400000C0400000E040000000410000104100002041"> : tensor<23xf32>
  %left = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]> : tensor<23xi32>
  %right = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]> : tensor<23xi32>
  %nan_left = arith.constant dense<false> : tensor<23xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0], [11.0], [12.0], [13.0], [14.0], [15.0], [16.0], [17.0], [18.0], [19.0], [20.0], [21.0], [22.0]]> : tensor<23x1xf64>
  %root = arith.constant dense<[22]> : tensor<1xi32>
  %output = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "lt", depth = 11 : i64, strategy = "walk"}
    : (tensor<?x4xf32>, tensor<23xi32>, tensor<23xf32>, tensor<23xi32>, tensor<23xi32>, tensor<23xi1>, tensor<23x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x4xf32>)
// CHECK:         arith.constant dense_resource<{{.*}}> : tensor<24x4xi32>
// CHECK:         arith.constant dense_resource<{{.*}}> : tensor<24x1xf64>
// CHECK:         %y = te.packed_forest %x, {{.*}} {comparison = "lt", depth = 11 : i64}
