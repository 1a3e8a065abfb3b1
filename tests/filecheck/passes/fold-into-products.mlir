// RUN: irkit-opt %s -p fold-into-products --split-input-file | filecheck %s
// RUN: irkit-opt %s -p fold-into-products --remarks=missed --split-input-file 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p fold-into-products,fold-into-products --split-input-file | filecheck %s

// (x - m) / s: w' = w / s, b' = b - (m / s) w
func.func @standard(%x: tensor<?x2xf64>) -> tensor<?x1xf64> {
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %scale = arith.constant dense<[2.0, 4.0]> : tensor<2xf64>
  %w = arith.constant dense<[[6.0], [8.0]]> : tensor<2x1xf64>
  %b = arith.constant dense<[10.0]> : tensor<1xf64>
  %0 = graph.sub %x, %mean : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  %1 = graph.div %0, %scale : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
  %2 = graph.matmul %1, %w : (tensor<?x2xf64>, tensor<2x1xf64>) -> tensor<?x1xf64>
  %3 = graph.add %2, %b : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  func.return %3 : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @standard
// CHECK:         %[[W:.*]] = arith.constant dense<{{\[\[}}3.000000e+00], [2.000000e+00]]> : tensor<2x1xf64>
// CHECK-NEXT:    %[[P:.*]] = graph.matmul %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = arith.constant dense<3.000000e+00> : tensor<1xf64>
// CHECK-NEXT:    %[[Y:.*]] = graph.add %[[P]], %[[B]]
// CHECK-NEXT:    func.return %[[Y]]

// -----

// Columns in another order, then a product of a product: what is scaled between them too.
builtin.module attributes {irkit.model = "{\"kind\": \"regressor\", \"inputs\": [\"x\"], \"outputs\": [\"y\"], \"methods\": {}, \"allow_nan\": false, \"allow_infinity\": false}"} {
  func.func @main(%x: tensor<?x2xf64>) -> tensor<?x1xf64> attributes {irkit.inputs = ["x"], irkit.outputs = ["y"]} {
    %order = arith.constant dense<[1, 0]> : tensor<2xi64>
    %v = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
    %scale = arith.constant dense<[2.0, 3.0]> : tensor<2xf64>
    %w = arith.constant dense<[[1.0], [1.0]]> : tensor<2x1xf64>
    %0 = graph.gather %x, %order {axis = 1 : i64} : (tensor<?x2xf64>, tensor<2xi64>) -> tensor<?x2xf64>
    %1 = graph.matmul %0, %v : (tensor<?x2xf64>, tensor<2x2xf64>) -> tensor<?x2xf64>
    %2 = graph.mul %1, %scale : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
    %3 = graph.matmul %2, %w : (tensor<?x2xf64>, tensor<2x1xf64>) -> tensor<?x1xf64>
    func.return %3 : tensor<?x1xf64>
  }
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[W:.*]] = arith.constant dense<{{\[\[}}1.800000e+01], [8.000000e+00]]> : tensor<2x1xf64>
// CHECK-NEXT:    %[[Y:.*]] = graph.matmul %x, %[[W]]
// CHECK-NEXT:    func.return %[[Y]]

// -----

// An infinite x comes to infinity and to NaN.
// MISSED: remark: [missed] fold-into-products/ProductOfProduct: 'graph.matmul': an infinity may come to something else
func.func @any_rows(%x: tensor<?x2xf64>) -> tensor<?x1xf64> {
  %v = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
  %w = arith.constant dense<[[1.0], [1.0]]> : tensor<2x1xf64>
  %0 = graph.matmul %x, %v : (tensor<?x2xf64>, tensor<2x2xf64>) -> tensor<?x2xf64>
  %1 = graph.matmul %0, %w : (tensor<?x2xf64>, tensor<2x1xf64>) -> tensor<?x1xf64>
  func.return %1 : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @any_rows
// CHECK-COUNT-2: graph.matmul

// -----

// MISSED: remark: [missed] fold-into-products/ScalerOfProduct: 'graph.matmul': a shift of 10000.0 is more than sums bear
func.func @far_from_zero(%x: tensor<?x1xf64>) -> tensor<?x1xf64> {
  %mean = arith.constant dense<[10000.0]> : tensor<1xf64>
  %w = arith.constant dense<[[6.0]]> : tensor<1x1xf64>
  %0 = graph.sub %x, %mean : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  %1 = graph.matmul %0, %w : (tensor<?x1xf64>, tensor<1x1xf64>) -> tensor<?x1xf64>
  func.return %1 : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @far_from_zero
// CHECK:         graph.sub

// -----

// MISSED: remark: [missed] fold-into-products/ScalerOfProduct: 'graph.matmul': a scale is zero, or so far from one that digits are lost
func.func @by_zero(%x: tensor<?x1xf64>) -> tensor<?x1xf64> {
  %scale = arith.constant dense<[0.0]> : tensor<1xf64>
  %w = arith.constant dense<[[6.0]]> : tensor<1x1xf64>
  %0 = graph.mul %x, %scale : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  %1 = graph.matmul %0, %w : (tensor<?x1xf64>, tensor<1x1xf64>) -> tensor<?x1xf64>
  func.return %1 : tensor<?x1xf64>
}
// CHECK-LABEL: func.func @by_zero
// CHECK:         graph.mul

// -----

// MISSED: remark: [missed] fold-into-products/ScalerOfProduct: 'graph.matmul': nothing scales or shifts its rows' columns, and them alone
func.func @read_twice(%x: tensor<?x1xf64>) -> (tensor<?x1xf64>, tensor<?x1xf64>) {
  %scale = arith.constant dense<[3.0]> : tensor<1xf64>
  %w = arith.constant dense<[[6.0]]> : tensor<1x1xf64>
  %0 = graph.mul %x, %scale : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xf64>
  %1 = graph.matmul %0, %w : (tensor<?x1xf64>, tensor<1x1xf64>) -> tensor<?x1xf64>
  func.return %0, %1 : tensor<?x1xf64>, tensor<?x1xf64>
}
// CHECK-LABEL: func.func @read_twice
// CHECK:         graph.mul

// -----

// MISSED: remark: [missed] fold-into-products/ScalerOfProduct: 'graph.matmul': another order of rounding shows in fewer bits than float64's
func.func @narrow(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %scale = arith.constant dense<[3.0]> : tensor<1xf32>
  %w = arith.constant dense<[[6.0]]> : tensor<1x1xf32>
  %0 = graph.mul %x, %scale : (tensor<?x1xf32>, tensor<1xf32>) -> tensor<?x1xf32>
  %1 = graph.matmul %0, %w : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
  func.return %1 : tensor<?x1xf32>
}
// CHECK-LABEL: func.func @narrow
// CHECK:         graph.mul
