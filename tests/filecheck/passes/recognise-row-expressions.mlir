// RUN: irkit-opt %s -p recognise-row-expressions,dce | filecheck %s
// RUN: irkit-opt %s -p recognise-row-expressions --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// CHECK-LABEL: @softmax
// CHECK-NEXT:    %y = graph.softmax %x {axis = 1 : i64}
// CHECK-NEXT:    func.return %y
func.func @softmax(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %m = graph.expression %x {text = "M(i) max=! X(i, k)"} : (tensor<3x5xf32>) -> tensor<3xf32>
  %e = graph.expression %x, %m {text = "E(i, k) = exp(X(i, k) - M(i))"} : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  %s = graph.expression %e {text = "S(i) +=! E(i, k)"} : (tensor<3x5xf32>) -> tensor<3xf32>
  %y = graph.expression %e, %s {text = "O(i, k) = E(i, k) / S(i)"} : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}

// What is left to irkit's rule is this rule's.
// CHECK-LABEL: @by_rule
// CHECK-NEXT:    %y = graph.softmax %x {axis = 1 : i64}
// CHECK-NEXT:    func.return %y
func.func @by_rule(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %m = graph.expression %x {text = "M(i) max=! X(i, k)", schedule = #loop.schedule<"for i, k of X; rule">} : (tensor<3x5xf32>) -> tensor<3xf32>
  %e = graph.expression %x, %m {text = "E(i, k) = exp(X(i, k) - M(i))"} : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  %s = graph.expression %e {text = "S(i) +=! E(i, k)", schedule = #loop.schedule<"for i, k of E; rule">} : (tensor<3x5xf32>) -> tensor<3xf32>
  %y = graph.expression %e, %s {text = "O(i, k) = E(i, k) / S(i)"} : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}

// Steps of the user's own are taken as they are.
// CHECK-LABEL: @by_steps
// CHECK-NOT:     graph.softmax
// MISSED:        a statement has a schedule of its own
func.func @by_steps(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %m = graph.expression %x {text = "M(i) max=! X(i, k)"} : (tensor<3x8xf32>) -> tensor<3xf32>
  %e = graph.expression %x, %m {text = "E(i, k) = exp(X(i, k) - M(i))"} : (tensor<3x8xf32>, tensor<3xf32>) -> tensor<3x8xf32>
  %s = graph.expression %e {text = "S(i) +=! E(i, k)", schedule = #loop.schedule<"for i, k of E; split k by 4">} : (tensor<3x8xf32>) -> tensor<3xf32>
  %y = graph.expression %e, %s {text = "O(i, k) = E(i, k) / S(i)"} : (tensor<3x8xf32>, tensor<3xf32>) -> tensor<3x8xf32>
  func.return %y : tensor<3x8xf32>
}

// CHECK-LABEL: @layer_norm
// CHECK-NEXT:    %y = graph.layer_norm %x {epsilon = 1.000000e-05 : f64, centred = true}
// CHECK-NEXT:    func.return %y
func.func @layer_norm(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %u = graph.expression %x {text = "U(b, i) +=! X(b, i, k)"} : (tensor<2x3x4xf64>) -> tensor<2x3xf64>
  %d = graph.expression %x, %u {text = "D(b, i, k) = X(b, i, k) - U(b, i) / 4.0"} : (tensor<2x3x4xf64>, tensor<2x3xf64>) -> tensor<2x3x4xf64>
  %v = graph.expression %d {text = "V(b, i) +=! D(b, i, k) * D(b, i, k)"} : (tensor<2x3x4xf64>) -> tensor<2x3xf64>
  %y = graph.expression %d, %v {text = "O(b, i, k) = D(b, i, k) / sqrt(V(b, i) / 4.0 + 1e-5)"} : (tensor<2x3x4xf64>, tensor<2x3xf64>) -> tensor<2x3x4xf64>
  func.return %y : tensor<2x3x4xf64>
}

// The exponentials are read by someone else: they are computed anyway.
// CHECK-LABEL: @read
// CHECK-NOT:     graph.softmax
// MISSED:        something else reads what is computed on the way
func.func @read(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %m = graph.expression %x {text = "M(i) max=! X(i, k)"} : (tensor<3x5xf32>) -> tensor<3xf32>
  %e = graph.expression %x, %m {text = "E(i, k) = exp(X(i, k) - M(i))"} : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  %s = graph.expression %e {text = "S(i) +=! E(i, k)"} : (tensor<3x5xf32>) -> tensor<3xf32>
  %y = graph.expression %e, %s {text = "O(i, k) = E(i, k) / S(i)"} : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  func.return %y, %e : tensor<3x5xf32>, tensor<3x5xf32>
}

// The mean is of another length, and the sum is over columns.
// CHECK-LABEL: @other
// CHECK-NOT:     graph.softmax
// CHECK-NOT:     graph.layer_norm
// MISSED:        a sum is not divided by the length of a row
func.func @other(%x: tensor<3x4xf32>, %z: tensor<4x4xf32>) -> (tensor<3x4xf32>, tensor<4x4xf32>) {
  %u = graph.expression %x {text = "U(i) +=! X(i, k)"} : (tensor<3x4xf32>) -> tensor<3xf32>
  %d = graph.expression %x, %u {text = "D(i, k) = X(i, k) - U(i) / 3.0"} : (tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
  %v = graph.expression %d {text = "V(i) +=! D(i, k) * D(i, k)"} : (tensor<3x4xf32>) -> tensor<3xf32>
  %y = graph.expression %d, %v {text = "O(i, k) = D(i, k) / sqrt(V(i) / 4.0 + 1e-5)"} : (tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
  %m = graph.expression %z {text = "M(k) max=! Z(i, k)"} : (tensor<4x4xf32>) -> tensor<4xf32>
  %e = graph.expression %z, %m {text = "E(i, k) = exp(Z(i, k) - M(k))"} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %s = graph.expression %e {text = "S(i) +=! E(i, k)"} : (tensor<4x4xf32>) -> tensor<4xf32>
  %w = graph.expression %e, %s {text = "O(i, k) = E(i, k) / S(i)"} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  func.return %y, %w : tensor<3x4xf32>, tensor<4x4xf32>
}
