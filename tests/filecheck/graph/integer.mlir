// Every graph op: custom and generic form, both ways.
// RUN: irkit-opt %s | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: irkit-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: func.func @mod(
// CHECK-NEXT:    %y = graph.mod %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
// GENERIC:       %y = "graph.mod"(%x, %b) : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
func.func @mod(%x: tensor<?x8xi32>, %b: tensor<8xi32>) {
  %y = graph.mod %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
  func.return
}

// CHECK-LABEL: func.func @not(
// CHECK-NEXT:    %q = graph.not %p : (tensor<?x8xi1>) -> tensor<?x8xi1>
// GENERIC:       %q = "graph.not"(%p) : (tensor<?x8xi1>) -> tensor<?x8xi1>
func.func @not(%p: tensor<?x8xi1>) {
  %q = graph.not %p : (tensor<?x8xi1>) -> tensor<?x8xi1>
  func.return
}

// CHECK-LABEL: func.func @rem(
// CHECK-NEXT:    %y = graph.rem %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
// GENERIC:       %y = "graph.rem"(%x, %b) : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
func.func @rem(%x: tensor<?x8xi32>, %b: tensor<8xi32>) {
  %y = graph.rem %x, %b : (tensor<?x8xi32>, tensor<8xi32>) -> tensor<?x8xi32>
  func.return
}

// CHECK-LABEL: func.func @shift_left(
// CHECK-NEXT:    %y = graph.shift_left %x, %b : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
// GENERIC:       %y = "graph.shift_left"(%x, %b) : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
func.func @shift_left(%x: tensor<?x8xui8>, %b: tensor<8xui8>) {
  %y = graph.shift_left %x, %b : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
  func.return
}

// CHECK-LABEL: func.func @shift_right(
// CHECK-NEXT:    %y = graph.shift_right %x, %b : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
// GENERIC:       %y = "graph.shift_right"(%x, %b) : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
func.func @shift_right(%x: tensor<?x8xui8>, %b: tensor<8xui8>) {
  %y = graph.shift_right %x, %b : (tensor<?x8xui8>, tensor<8xui8>) -> tensor<?x8xui8>
  func.return
}

// CHECK-LABEL: func.func @xor(
// CHECK-NEXT:    %r = graph.xor %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
// GENERIC:       %r = "graph.xor"(%p, %q) : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
func.func @xor(%p: tensor<?x8xi1>, %q: tensor<?x8xi1>) {
  %r = graph.xor %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
  func.return
}

// CHECK-LABEL: func.func @threefry(
// CHECK-NEXT:    %y = graph.threefry %k, %c : (tensor<ui64>, tensor<8xui64>) -> tensor<8xui64>
// GENERIC:       %y = "graph.threefry"(%k, %c) : (tensor<ui64>, tensor<8xui64>) -> tensor<8xui64>
func.func @threefry(%k: tensor<ui64>, %c: tensor<8xui64>) {
  %y = graph.threefry %k, %c : (tensor<ui64>, tensor<8xui64>) -> tensor<8xui64>
  func.return
}
