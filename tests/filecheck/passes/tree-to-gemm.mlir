// RUN: irkit-opt %s -p tree-to-gemm --split-input-file --check-semantics | filecheck %s
// RUN: irkit-opt %s -p tree-to-gemm,tree-to-gemm --split-input-file | filecheck %s
// RUN: irkit-opt %s -p 'tree-to-gemm{force=true}' --split-input-file --check-semantics | filecheck %s --check-prefix=FORCE

// Two trees: a node whose right child is a leaf, and a lone leaf.
// CHECK-LABEL: func.func @main
// FORCE-NOT: graph.forest
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  // CHECK: %[[F:.*]] = arith.constant dense<[3, 1, 0, 0]> : tensor<4xi64>
  // CHECK-NEXT: %[[X:.*]] = graph.gather %x, %[[F]] {axis = 1 : i64}
  // CHECK-NEXT: %[[T:.*]] = arith.constant dense<[5.000000e-01, -5.000000e-01, 0.000000e+00, 0.000000e+00]>
  // CHECK-NEXT: %[[N:.*]] = arith.constant dense<[true, false, false, false]>
  // CHECK-NEXT: %[[C:.*]] = graph.compare %[[X]], %[[T]] {predicate = "le"}
  // CHECK-NEXT: %[[NAN:.*]] = graph.is_nan %[[X]]
  // CHECK-NEXT: %[[NL:.*]] = graph.and %[[NAN]], %[[N]]
  // CHECK-NEXT: %[[LEFT:.*]] = graph.or %[[C]], %[[NL]]
  // CHECK-NEXT: %[[H:.*]] = graph.cast %[[LEFT]] {to = f32}
  // CHECK-NEXT: %[[R:.*]] = graph.reshape %[[H]] {{.*}} -> tensor<?x2x1x2xf32>
  // CHECK-NEXT: %[[P:.*]] = arith.constant dense<{{\[\[\[}}1.000000e+00, 1.000000e+00, -1.000000e+00], [1.000000e+00, -1.000000e+00, 0.000000e+00]], {{.*}}> : tensor<2x2x3xf32>
  // CHECK-NEXT: %[[M:.*]] = graph.matmul %[[R]], %[[P]]
  // CHECK-NEXT: %[[D:.*]] = arith.constant dense<{{\[\[\[}}2.000000e+00, 1.000000e+00, 0.000000e+00]], {{\[\[}}0.000000e+00, -1.000000e+00, -1.000000e+00]]]> : tensor<2x1x3xf32>
  // CHECK-NEXT: %[[E:.*]] = graph.compare %[[M]], %[[D]] {predicate = "eq"}
  // CHECK-NEXT: %[[CHOSEN:.*]] = graph.cast %[[E]] {to = f64}
  // CHECK-NEXT: %[[V:.*]] = arith.constant dense<{{\[\[\[}}1.000000e+00], [2.000000e+00], [3.000000e+00]], {{\[\[}}4.000000e+00], [0.000000e+00], [0.000000e+00]]]> : tensor<2x3x1xf64>
  // CHECK-NEXT: %[[PICKED:.*]] = graph.matmul %[[CHOSEN]], %[[V]]
  // CHECK-NEXT: %[[LEAVES:.*]] = graph.reshape %[[PICKED]] {{.*}} -> tensor<?x2x1xf64>
  // CHECK-NEXT: %[[L0:.*]] = graph.slice %[[LEAVES]] {offsets = array<i64: 0, 0, 0>, sizes = array<i64: {{-?[0-9]+}}, 1, 1>, strides = array<i64: 1, 1, 1>}
  // CHECK-NEXT: %[[BASE:.*]] = arith.constant dense<2.500000e-01> : tensor<1xf64>
  // CHECK-NEXT: %[[START:.*]] = graph.add %[[L0]], %[[BASE]]
  // CHECK-NEXT: %[[L1:.*]] = graph.slice %[[LEAVES]] {offsets = array<i64: 0, 1, 0>, sizes = array<i64: {{-?[0-9]+}}, 1, 1>, strides = array<i64: 1, 1, 1>}
  // CHECK-NEXT: %[[ALL:.*]] = graph.concat(%[[START]], %[[L1]]) {axis = 1 : i64}
  // CHECK-NEXT: %[[Y:.*]] = graph.reduce %[[ALL]] {axes = array<i64: 1>, kind = "sum", keepdims = false}
  // CHECK-NEXT: func.return %[[Y]]
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "gemm"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %y : tensor<?x1xf64>
}

// -----

// Where NaN never goes left, nothing asks for it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.is_nan
// CHECK-NOT: graph.forest
// CHECK: graph.compare {{.*}} {predicate = "lt"}
// CHECK-NOT: graph.is_nan
// CHECK: func.return
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf32> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<false> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]> : tensor<6x1xf32>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf32>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "lt", depth = 2 : i64, strategy = "gemm"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf32>, tensor<2xi32>, tensor<2xi32>, tensor<1xf32>) -> tensor<?x1xf32>
  func.return %y : tensor<?x1xf32>
}

// -----

// Each tree has its own output column; the first has none.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.forest
// CHECK: %[[Y:.*]] = graph.concat({{.*}}) {axis = 1 : i64} : (tensor<?x1xf64>, tensor<?x1xf64>, tensor<?x1xf64>) -> tensor<?x3xf64>
// CHECK-NEXT: func.return %[[Y]]
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x3xf64> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[2, 1]> : tensor<2xi32>
  %base = arith.constant dense<[0.25, 0.5, 0.75]> : tensor<3xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "gemm"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return %y : tensor<?x3xf64>
}

// -----

// Leaves with a value for every column.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.forest
// CHECK: graph.reduce {{.*}} : (tensor<?x2x2xf64>) -> tensor<?x2xf64>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x2xf64> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0, 0.0], [0.0, 0.0], [1.0, -1.0], [2.0, -2.0], [3.0, -3.0], [4.0, -4.0]]> : tensor<6x2xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25, 0.5]> : tensor<2xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "gemm"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x2xf64>, tensor<2xi32>, tensor<2xi32>, tensor<2xf64>) -> tensor<?x2xf64>
  func.return %y : tensor<?x2xf64>
}

// -----

// Another strategy's: only `force` rewrites it.
// CHECK-LABEL: func.func @main
// CHECK: graph.forest {{.*}} {comparison = "le", depth = 2 : i64, strategy = "traversal"}
// FORCE-LABEL: func.func @main
// FORCE-NOT: graph.forest
// FORCE: graph.compare
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
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "traversal"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %y : tensor<?x1xf64>
}

// -----

// Too deep.
// CHECK-LABEL: func.func @main
// CHECK: graph.forest {{.*}} {comparison = "le", depth = 11 : i64, strategy = "gemm"}
// FORCE: graph.forest {{.*}} {comparison = "le", depth = 11 : i64
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
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 11 : i64, strategy = "gemm"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %y : tensor<?x1xf64>
}

// -----

// Leaves that are not known.
// CHECK-LABEL: func.func @main
// CHECK: graph.forest
// FORCE: graph.forest
func.func @main(%x: tensor<?x4xf32>, %value: tensor<6x1xf64>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "gemm"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %y : tensor<?x1xf64>
}

// -----

// An infinite leaf would make NaN of the leaves that are not chosen.
// CHECK-LABEL: func.func @main
// CHECK: graph.forest
// FORCE: graph.forest
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0e+999], [2.0], [3.0], [4.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "gemm"}
    : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %y : tensor<?x1xf64>
}
