// RUN: irkit-opt %s -p select-first | filecheck %s
// RUN: irkit-opt %s -p select-first --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// Through a choice, arithmetic with constants, a column that broadcasts, and another selection.
// CHECK-LABEL: func.func @scaled
// CHECK-DAG: arith.constant dense<[1, 0]> : tensor<2xi64>
// CHECK: %[[X:.*]] = graph.gather %x, %{{.*}} {axis = 1 : i64} : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x2xf32>
// CHECK: dense<[2.000000e+00, 4.000000e+00]> : tensor<2xf32>
// CHECK: %[[S:.*]] = graph.sub %[[X]], %{{.*}} : (tensor<?x2xf32>, tensor<2xf32>)
// CHECK: graph.mul %[[S]], %column : (tensor<?x2xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
// CHECK-NOT: graph.gather
func.func @scaled(%x: tensor<?x4xf32>, %column: tensor<?x1xf32>) -> tensor<?x2xf32> {
  %order = arith.constant dense<[2, 1, 0, 3]> : tensor<4xi64>
  %mean = arith.constant dense<[3.0, 2.0, 4.0, 5.0]> : tensor<4xf32>
  %best = arith.constant dense<[1, 2]> : tensor<2xi64>
  %0 = graph.gather %x, %order {axis = 1 : i64} : (tensor<?x4xf32>, tensor<4xi64>) -> tensor<?x4xf32>
  %1 = graph.sub %0, %mean : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %2 = graph.mul %1, %column : (tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x4xf32>
  %3 = graph.gather %2, %best {axis = 1 : i64} : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  func.return %3 : tensor<?x2xf32>
}

// Of parts side by side only those that something is picked from; of a product its columns.
// CHECK-LABEL: func.func @side_by_side
// CHECK-NOT: graph.exp
// CHECK: %[[W:.*]] = arith.constant dense<{{\[\[}}2.000000e+00], [4.000000e+00]]> : tensor<2x1xf32>
// CHECK: %[[P:.*]] = graph.matmul %b, %[[W]] {irkit.precision = "ieee"} : (tensor<?x2xf32>, tensor<2x1xf32>) -> tensor<?x1xf32>
// CHECK: %[[A:.*]] = graph.gather %a
// CHECK: graph.concat(%[[P]], %{{.*}}) {axis = 1 : i64} : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
func.func @side_by_side(%a: tensor<?x2xf32>, %b: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %best = arith.constant dense<[3, 5]> : tensor<2xi64>
  %0 = graph.exp %a : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %1 = graph.matmul %b, %w {irkit.precision = "ieee"} : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %2 = graph.sqrt %a : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = graph.concat(%0, %1, %2) {axis = 1 : i64} : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x6xf32>
  %4 = graph.gather %3, %best {axis = 1 : i64} : (tensor<?x6xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  func.return %4 : tensor<?x2xf32>
}

// A forest of one tree that compares the third of four features; leaves name any.
// CHECK-LABEL: func.func @forest
// CHECK: graph.gather %x, %{{.*}} {axis = 1 : i64} : (tensor<?x4xf32>, tensor<1xi64>) -> tensor<?x1xf32>
// CHECK: graph.exp %{{.*}} : (tensor<?x1xf32>)
// CHECK: dense<0> : tensor<3xi32>
// CHECK: graph.forest %{{.*}} (tensor<?x1xf32>, tensor<3xi32>
func.func @forest(%x: tensor<?x4xf32>) -> tensor<?x1xf64> {
  %feature = arith.constant dense<[2, 3, 1]> : tensor<3xi32>
  %threshold = arith.constant dense<[0.5, 0.0, 0.0]> : tensor<3xf32>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan = arith.constant dense<false> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf64>
  %zero = arith.constant dense<0> : tensor<1xi32>
  %base = arith.constant dense<0.0> : tensor<1xf64>
  %0 = graph.exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = graph.forest %0, %feature, %threshold, %left, %right, %nan, %value, %zero, %zero, %base {comparison = "le", depth = 1 : i64, strategy = "auto"} : (tensor<?x4xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %1 : tensor<?x1xf64>
}

// Rows of zeros, of truths as numbers.
// CHECK-LABEL: func.func @zeros
// CHECK: graph.gather %x
// CHECK: graph.compare %{{.*}} : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xi1>
// CHECK: graph.cast
// CHECK: graph.matmul %{{.*}} {irkit.precision = "ieee"} : (tensor<?x2xf32>, tensor<2x1xf32>) -> tensor<?x1xf32>
func.func @zeros(%x: tensor<?x3xf32>) -> tensor<?x1xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %w = arith.constant dense<[[1.0], [0.0], [3.0]]> : tensor<3x1xf32>
  %0 = graph.compare %x, %c {predicate = "eq"} : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xi1>
  %1 = graph.cast %0 {to = f32} : (tensor<?x3xi1>) -> tensor<?x3xf32>
  %2 = graph.matmul %1, %w {irkit.precision = "ieee"} : (tensor<?x3xf32>, tensor<3x1xf32>) -> tensor<?x1xf32>
  func.return %2 : tensor<?x1xf32>
}

// Left alone: what mixes columns, what is read whole too, columns twice, and zeros that may meet infinity.
// CHECK-LABEL: func.func @whole
// CHECK: graph.softmax %x
// CHECK: graph.exp %x : (tensor<?x3xf32>)
// CHECK: graph.sqrt %x : (tensor<?x3xf32>)
// CHECK: graph.matmul %{{.*}} : (tensor<?x3xf32>, tensor<3x1xf32>)
// MISSED-DAG: what it picks from is not elementwise
// MISSED-DAG: something else reads what it picks from
// MISSED-DAG: it leaves no columns out, or has some of them twice
// MISSED-DAG: zero times infinity is no zero
func.func @whole(%x: tensor<?x3xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x1xf32>) {
  %best = arith.constant dense<[0, 2]> : tensor<2xi64>
  %twice = arith.constant dense<[1, 1]> : tensor<2xi64>
  %w = arith.constant dense<[[1.0], [0.0], [3.0]]> : tensor<3x1xf32>
  %0 = graph.softmax %x {axis = 1 : i64} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = graph.gather %0, %best {axis = 1 : i64} : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  %2 = graph.exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %3 = graph.gather %2, %best {axis = 1 : i64} : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  %4 = graph.sqrt %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %5 = graph.gather %4, %twice {axis = 1 : i64} : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  %6 = graph.abs %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %7 = graph.matmul %6, %w : (tensor<?x3xf32>, tensor<3x1xf32>) -> tensor<?x1xf32>
  func.return %1, %3, %2, %5, %7 : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x1xf32>
}
