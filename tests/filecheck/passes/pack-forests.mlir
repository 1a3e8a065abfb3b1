// RUN: irkit-opt %s -p 'pack-forests{device="h200"}' --split-input-file | filecheck %s
// RUN: irkit-opt %s -p 'pack-forests{device="h200"}' --remarks=missed --split-input-file 2>&1 | filecheck %s --check-prefix=WHY
// RUN: irkit-opt %s -p pack-forests --split-input-file | filecheck %s --check-prefix=NONE
// RUN: irkit-opt %s -p 'pack-forests{device="cpu2"}' --split-input-file | filecheck %s --check-prefix=NONE

// NONE-NOT: te.heap_forest

// A node is its feature, with the highest bit where NaN goes left, and its threshold's bits.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x2xf64> {
  %feature = arith.constant dense<[[1, 0, 3], [2, 1, 0]]> : tensor<2x3xi32>
  %threshold = arith.constant dense<[[0.0, -0.5, 0.5], [0.0, 1.0, -1.0]]> : tensor<2x3xf32>
  %nan_left = arith.constant dense<[[true, false, false], [false, true, false]]> : tensor<2x3xi1>
  %value = arith.constant dense<[[[1.0], [2.0], [3.0], [4.0]], [[5.0], [6.0], [7.0], [8.0]]]> : tensor<2x4x1xf64>
  %output = arith.constant dense<[0, 1]> : tensor<2xi32>
  %base = arith.constant dense<[0.25, -1.0]> : tensor<2xf64>
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "lt", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xi1>, tensor<2x4x1xf64>, tensor<2xi32>, tensor<2xf64>) -> tensor<?x2xf64>
  return %y : tensor<?x2xf64>
}
// CHECK-LABEL: func.func @main
// CHECK:       %[[N:.*]] = arith.constant dense<{{\[\[}}[0, 0], [-2147483647, 0], [0, -1090519040], [3, 1056964608]], {{\[}}[0, 0], [2, 0], [-2147483647, 1065353216], [0, -1082130432]]]> : tensor<2x4x2xi32>
// CHECK-NEXT:  te.heap_forest %x, %[[N]], %value, %output, %base {comparison = "lt", depth = 2 : i64}
// CHECK-SAME:  : (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x1xf64>, tensor<2xi32>, tensor<2xf64>) -> tensor<?x2xf64>

// -----

// What is known of the arrays alone goes with them.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[[1]]> : tensor<1x1xi32>
  %threshold = arith.constant dense<[[0.5]]> : tensor<1x1xf32>
  %nan_left = arith.constant dense<[[true]]> : tensor<1x1xi1>
  %value = arith.constant dense<[[[1.0], [2.0]]]> : tensor<1x2x1xf64>
  %output = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = 1 : i64, symmetric}
    : (tensor<?x4xf32>, tensor<1x1xi32>, tensor<1x1xf32>, tensor<1x1xi1>, tensor<1x2x1xf64>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main
// CHECK:       te.heap_forest %x, {{.*}} {comparison = "le", depth = 1 : i64} :

// -----

// Trees by child pointers that are nearly perfect become so: below the leaf of value 4 there are three places more.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %nodes = arith.constant dense<[[1056964608, 0, 3, 2], [2143289344, 0, 0, 0], [-1090519040, 0, -2147483647, 4], [2143289344, 0, 0, 2], [2143289344, 0, 0, 3], [2143289344, 0, 0, 4]]> : tensor<6x4xi32>
  %value = arith.constant dense<[[0.0], [4.0], [0.0], [3.0], [1.0], [2.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 1]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = te.packed_forest %x, %nodes, %value, %root, %output, %base {comparison = "le", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<6x4xi32>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main
// CHECK:       %[[N:.*]] = arith.constant dense<{{\[\[}}[0, 0], [3, 1056964608], [-2147483647, -1090519040], [0, 0]], {{\[}}[0, 0], [0, 0], [0, 0], [0, 0]]]> : tensor<2x4x2xi32>
// CHECK-NEXT:  %[[V:.*]] = arith.constant dense<{{\[\[}}[1.000000e+00], [2.000000e+00], [3.000000e+00], [3.000000e+00]], {{\[}}[4.000000e+00], [4.000000e+00], [4.000000e+00], [4.000000e+00]]]> : tensor<2x4x1xf64>
// CHECK-NEXT:  te.heap_forest %x, %[[N]], %[[V]], %output, %base {comparison = "le", depth = 2 : i64}

// -----

// Thresholds of 64 bits take 16 bytes.
func.func @main(%x: tensor<?x4xf64>, %nodes: tensor<6x4xi32>, %value: tensor<6x1xf64>) -> tensor<?x1xf64> {
  %root = arith.constant dense<[0, 1]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "le", depth = 2 : i64}
    : (tensor<?x4xf64>, tensor<6x4xi32>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main
// CHECK:       te.packed_forest
// WHY-DAG:       remark: {{.*}}x is of f64

// -----

// Trees that come as an argument are not known.
func.func @main(%x: tensor<?x4xf32>, %nodes: tensor<6x4xi32>, %value: tensor<6x1xf64>) -> tensor<?x1xf64> {
  %root = arith.constant dense<[0, 1]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "le", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<6x4xi32>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main
// CHECK:       te.packed_forest
// WHY-DAG:       remark: {{.*}}its trees are not known

// -----

// Of five levels one leaf hangs from each, and there is an empty node: padded there would be 32 leaves.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %nodes = arith.constant dense<[[0, 0, 0, 2], [0, 0, 0, 0], [2143289344, 0, 0, 1], [0, 0, 0, 4], [2143289344, 0, 0, 3], [0, 0, 0, 6], [2143289344, 0, 0, 5], [0, 0, 0, 8], [2143289344, 0, 0, 7], [0, 0, 0, 10], [2143289344, 0, 0, 9], [2143289344, 0, 0, 10]]> : tensor<12x4xi32>
  %value = arith.constant dense<1.0> : tensor<12x1xf64>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %output = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = te.packed_forest %x, %nodes, %value, %root, %output, %base {comparison = "le", depth = 5 : i64}
    : (tensor<?x4xf32>, tensor<12x4xi32>, tensor<12x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main
// CHECK:       te.packed_forest
// WHY-DAG:       remark: {{.*}}7 leaves would take 32 places
