// RUN: irkit-opt %s -p 'specialise-batch{size=6}' | filecheck %s
// RUN: irkit-opt %s -p 'specialise-batch{size=6 symbol=n}' | filecheck %s

// The name goes with the dimension.
// CHECK-LABEL: func.func @sum(%x: tensor<6x4xf32>) -> tensor<4xf32> {
func.func @sum(%x: tensor<?x4xf32>) -> tensor<4xf32> attributes {irkit.dims = [["n"]]} {
  // CHECK-NEXT: %y = graph.reduce %x {kind = "mean", axes = array<i64: 0>, keepdims = false} : (tensor<6x4xf32>) -> tensor<4xf32>
  %y = graph.reduce %x {kind = "mean", axes = array<i64: 0>, keepdims = false} : (tensor<?x4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// What says a size says the new one; a reshape's is what is left of the elements.
// CHECK-LABEL: func.func @sizes(
func.func @sizes(%x: tensor<2x?x4xf32>, %t: tensor<1x4xf32>) -> (tensor<?x2xf32>, tensor<1x?x4xf32>, tensor<?x4xf32>) attributes {irkit.dims = [["n"], []]} {
  // CHECK-NEXT: %a = graph.reshape %x {shape = array<i64: 24, 2>} : (tensor<2x6x4xf32>) -> tensor<24x2xf32>
  %a = graph.reshape %x {shape = array<i64: -9223372036854775808, 2>} : (tensor<2x?x4xf32>) -> tensor<?x2xf32>
  // CHECK-NEXT: %b = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 6, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x6x4xf32>) -> tensor<1x6x4xf32>
  %b = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, -9223372036854775808, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x?x4xf32>) -> tensor<1x?x4xf32>
  // CHECK-NEXT: %c = graph.expand %t {shape = array<i64: 6, 4>} : (tensor<1x4xf32>) -> tensor<6x4xf32>
  %c = graph.expand %t like %x {shape = array<i64: -9223372036854775808, 4>} : (tensor<1x4xf32>, tensor<2x?x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: func.return %a, %b, %c : tensor<24x2xf32>, tensor<1x6x4xf32>, tensor<6x4xf32>
  func.return %a, %b, %c : tensor<?x2xf32>, tensor<1x?x4xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func.func @fixed(%x: tensor<3xf32>) -> tensor<3xf32> {
func.func @fixed(%x: tensor<3xf32>) -> tensor<3xf32> {
  func.return %x : tensor<3xf32>
}
