// RUN: irkit-opt %s -p fold-constants | filecheck %s
// RUN: irkit-opt %s -p fold-constants,fold-constants | filecheck %s

// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK-NEXT: %[[C:.*]] = arith.constant dense<[-3.000000e+00, -6.000000e+00]> : tensor<2xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.add %x, %[[C]]
  // CHECK-NEXT: func.return %[[Y]]
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<3.0> : tensor<2xf32>
  %0 = graph.mul %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = graph.neg %0 : (tensor<2xf32>) -> tensor<2xf32>
  %y = graph.add %x, %1 : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// A constant with another use stays.
// CHECK-LABEL: func.func @used_twice
func.func @used_twice() -> (tensor<2xi64>, tensor<2xi64>) {
  // CHECK-NEXT: %[[A:.*]] = arith.constant dense<[7, -7]> : tensor<2xi64>
  // CHECK-NEXT: %[[Q:.*]] = arith.constant dense<[3, -3]> : tensor<2xi64>
  // CHECK-NEXT: func.return %[[A]], %[[Q]]
  %a = arith.constant dense<[7, -7]> : tensor<2xi64>
  %b = arith.constant dense<2> : tensor<2xi64>
  %q = graph.div %a, %b : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  func.return %a, %q : tensor<2xi64>, tensor<2xi64>
}

// Both results of an op with two.
// CHECK-LABEL: func.func @cell
func.func @cell() -> (tensor<1x1xf32>, tensor<1x1xf32>) {
  // CHECK-NEXT: %[[H:.*]] = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
  // CHECK-NEXT: %[[C:.*]] = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
  // CHECK-NEXT: func.return %[[H]], %[[C]]
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %z = arith.constant dense<0.0> : tensor<1x1xf32>
  %w = arith.constant dense<0.0> : tensor<4x1xf32>
  %b = arith.constant dense<0.0> : tensor<4xf32>
  %h, %c = graph.lstm_cell %x, %z, %z, %w, %w, %b : (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  func.return %h, %c : tensor<1x1xf32>, tensor<1x1xf32>
}

// Folding must not make weights that were not there.
// CHECK-LABEL: func.func @expansion
func.func @expansion() -> tensor<1000x1000xf32> {
  // CHECK-NEXT: arith.constant dense<1.000000e+00> : tensor<1xf32>
  // CHECK-NEXT: graph.expand
  %a = arith.constant dense<1.0> : tensor<1xf32>
  %y = graph.expand %a {shape = array<i64: 1000, 1000>} : (tensor<1xf32>) -> tensor<1000x1000xf32>
  func.return %y : tensor<1000x1000xf32>
}

// CHECK-LABEL: func.func @not_constant
func.func @not_constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: graph.neg
  %y = graph.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}
