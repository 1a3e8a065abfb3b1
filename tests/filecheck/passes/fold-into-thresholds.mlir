// RUN: irkit-opt %s -p fold-into-thresholds,dce --split-input-file | filecheck %s
// RUN: irkit-opt %s -p fold-into-thresholds,fold-into-thresholds,dce --split-input-file | filecheck %s
// RUN: irkit-opt %s -p fold-into-thresholds --remarks=missed --split-input-file 2>&1 | filecheck %s --check-prefix=MISSED

// The column picked is the third; (x - 1) / 2 <= 4 up to 9. What is missing still is.
func.func @main(%x: tensor<?x3xf64>) -> tensor<?x1xf64> {
  %third = arith.constant dense<[2]> : tensor<1xi64>
  %mean = arith.constant dense<[1.0]> : tensor<1xf64>
  %scale = arith.constant dense<[2.0]> : tensor<1xf64>
  %0 = graph.gather %x, %third {axis = 1 : i64} : (tensor<?x3xf64>, tensor<1xi64>) -> tensor<?x1xf64>
  %1 = graph.sub %0, %mean : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  %2 = graph.div %1, %scale : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  %feature = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %threshold = arith.constant dense<[4.0, 0.0, 0.0]> : tensor<3xf64>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan_left = arith.constant dense<[true, false, false]> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf64>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %2, %feature, %threshold, %left, %right, %nan_left, %value, %root, %root, %base {comparison = "le", depth = 1 : i64, strategy = "auto"}
    : (tensor<?x1xf64>, tensor<3xi32>, tensor<3xf64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x3xf64>)
// CHECK-NOT:     graph.sub
// CHECK:         %[[F:.*]] = arith.constant dense<[2, 0, 0]> : tensor<3xi32>
// CHECK:         %[[T:.*]] = arith.constant dense<[9.000000e+00, 0.000000e+00, 0.000000e+00]> : tensor<3xf64>
// CHECK:         %[[N:.*]] = arith.constant dense<[true, false, false]> : tensor<3xi1>
// CHECK:         graph.forest %x, %[[F]], %[[T]], %{{.*}}, %{{.*}}, %[[N]]

// -----

// `<` of what is cast: 0.5 is met by x that are rounded to it, from some way below; what is missing becomes 3.
func.func @main(%x: tensor<?x1xf64>) -> tensor<?x1xf64> {
  %three = arith.constant dense<[3.0]> : tensor<1xf64>
  %0 = graph.is_nan %x : (tensor<?x1xf64>) -> tensor<?x1xi1>
  %1 = graph.where %0, %three, %x : (tensor<?x1xi1>, tensor<1xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  %2 = graph.cast %1 {to = f32} : (tensor<?x1xf64>) -> tensor<?x1xf32>
  %feature = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %threshold = arith.constant dense<[0.5, 0.0, 0.0]> : tensor<3xf32>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan_left = arith.constant dense<[true, false, false]> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf64>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %2, %feature, %threshold, %left, %right, %nan_left, %value, %root, %root, %base {comparison = "lt", depth = 1 : i64, strategy = "auto"}
    : (tensor<?x1xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x1xf64>)
// CHECK-NOT:     graph.cast
// CHECK:         %[[T:.*]] = arith.constant dense<[0.49999998509883881, 0.000000e+00, 0.000000e+00]> : tensor<3xf64>
// CHECK:         %[[N:.*]] = arith.constant dense<false> : tensor<3xi1>
// CHECK:         graph.forest %x, %{{.*}}, %[[T]], %{{.*}}, %{{.*}}, %[[N]]

// -----

// MISSED: remark: [missed] fold-into-thresholds/ColumnsOfThresholds: 'graph.forest': a column falls where the input's rises, or comes to neither side
func.func @main(%x: tensor<?x1xf64>) -> tensor<?x1xf64> {
  %scale = arith.constant dense<[-2.0]> : tensor<1xf64>
  %0 = graph.mul %x, %scale : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  %feature = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %threshold = arith.constant dense<[4.0, 0.0, 0.0]> : tensor<3xf64>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan_left = arith.constant dense<[true, false, false]> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf64>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %0, %feature, %threshold, %left, %right, %nan_left, %value, %root, %root, %base {comparison = "le", depth = 1 : i64, strategy = "auto"}
    : (tensor<?x1xf64>, tensor<3xi32>, tensor<3xf64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x1xf64>)
// CHECK:         graph.mul

// -----

// MISSED: remark: [missed] fold-into-thresholds/ColumnsOfThresholds: 'graph.forest': a column that it compares hangs on no column of the input, in its order
func.func @main(%x: tensor<?x1xf64>) -> tensor<?x1xf64> {
  %0 = graph.mul %x, %x : (tensor<?x1xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  %1 = graph.sub %0, %x : (tensor<?x1xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  %one = arith.constant dense<[1.0]> : tensor<1xf64>
  %2 = graph.concat(%1) {axis = 1 : i64} : (tensor<?x1xf64>) -> tensor<?x1xf64>
  %feature = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %threshold = arith.constant dense<[4.0, 0.0, 0.0]> : tensor<3xf64>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan_left = arith.constant dense<[true, false, false]> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf64>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %2, %feature, %threshold, %left, %right, %nan_left, %value, %root, %root, %base {comparison = "le", depth = 1 : i64, strategy = "auto"}
    : (tensor<?x1xf64>, tensor<3xi32>, tensor<3xf64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x1xf64>)
// CHECK:         graph.sub

// -----

// Bins are counts of knots: 1.5 of them lie below what the second, 7, is.
func.func @main(%x: tensor<?x2xf64>) -> tensor<?x1xf64> {
  %columns = arith.constant dense<[0, 0, 1]> : tensor<3xi64>
  %knots = arith.constant dense<[5.0, 7.0, 6.0]> : tensor<3xf64>
  %groups = arith.constant dense<[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]> : tensor<3x2xf64>
  %first = arith.constant dense<[0]> : tensor<1xi64>
  %cells = graph.gather %x, %columns {axis = 1 : i64} : (tensor<?x2xf64>, tensor<3xi64>) -> tensor<?x3xf64>
  %above = graph.compare %cells, %knots {predicate = "ge"} : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xi1>
  %bits = graph.cast %above {to = f64} : (tensor<?x3xi1>) -> tensor<?x3xf64>
  %bins = graph.matmul %bits, %groups : (tensor<?x3xf64>, tensor<3x2xf64>) -> tensor<?x2xf64>
  %2 = graph.gather %bins, %first {axis = 1 : i64} : (tensor<?x2xf64>, tensor<1xi64>) -> tensor<?x1xf64>
  %feature = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %threshold = arith.constant dense<[1.5, 0.0, 0.0]> : tensor<3xf64>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan_left = arith.constant dense<[true, false, false]> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf64>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %2, %feature, %threshold, %left, %right, %nan_left, %value, %root, %root, %base {comparison = "le", depth = 1 : i64, strategy = "auto"}
    : (tensor<?x1xf64>, tensor<3xi32>, tensor<3xf64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x2xf64>)
// CHECK-NOT:     graph.matmul
// CHECK:         arith.constant dense<[6.9999999999999991, 0.000000e+00, 0.000000e+00]> : tensor<3xf64>
// CHECK:         arith.constant dense<[true, false, false]> : tensor<3xi1>
// CHECK:         graph.forest %x,

// -----

// Of two columns of the input a count hangs on both.
func.func @main(%x: tensor<?x2xf64>) -> tensor<?x1xf64> {
  %knots = arith.constant dense<[5.0, 7.0]> : tensor<2xf64>
  %groups = arith.constant dense<[[1.0], [1.0]]> : tensor<2x1xf64>
  %above = graph.compare %x, %knots {predicate = "ge"} : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xi1>
  %bits = graph.cast %above {to = f64} : (tensor<?x2xi1>) -> tensor<?x2xf64>
  %2 = graph.matmul %bits, %groups : (tensor<?x2xf64>, tensor<2x1xf64>) -> tensor<?x1xf64>
  %feature = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %threshold = arith.constant dense<[1.5, 0.0, 0.0]> : tensor<3xf64>
  %left = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
  %right = arith.constant dense<[2, 1, 2]> : tensor<3xi32>
  %nan_left = arith.constant dense<[true, false, false]> : tensor<3xi1>
  %value = arith.constant dense<[[0.0], [1.0], [2.0]]> : tensor<3x1xf64>
  %root = arith.constant dense<[0]> : tensor<1xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = graph.forest %2, %feature, %threshold, %left, %right, %nan_left, %value, %root, %root, %base {comparison = "le", depth = 1 : i64, strategy = "auto"}
    : (tensor<?x1xf64>, tensor<3xi32>, tensor<3xf64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3x1xf64>, tensor<1xi32>, tensor<1xi32>, tensor<1xf64>) -> tensor<?x1xf64>
  return %y : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x2xf64>)
// CHECK:         graph.matmul
