// RUN: irkit-opt %s -p widen-half | filecheck %s
// Run again, nothing is left to widen.
// RUN: irkit-opt %s -p widen-half,widen-half | filecheck %s

// CHECK-LABEL: func.func @product
// CHECK-NEXT:    %[[X:.*]] = graph.cast %x {to = f32} : (tensor<?x8xf16>) -> tensor<?x8xf32>
// CHECK-NEXT:    %[[W:.*]] = graph.cast %w {to = f32} : (tensor<8x4xf16>) -> tensor<8x4xf32>
// CHECK-NEXT:    %[[Y:.*]] = graph.matmul %[[X]], %[[W]] : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT:    %[[R:.*]] = graph.cast %[[Y]] {to = f16} : (tensor<?x4xf32>) -> tensor<?x4xf16>
// CHECK-NEXT:    func.return %[[R]]
func.func @product(%x: tensor<?x8xf16>, %w: tensor<8x4xf16>) -> tensor<?x4xf16> {
  %y = graph.matmul %x, %w : (tensor<?x8xf16>, tensor<8x4xf16>) -> tensor<?x4xf16>
  func.return %y : tensor<?x4xf16>
}

// A value is made wide once; what passes from op to op is of 16 bits, and is rounded there.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[X:.*]] = graph.cast %x {to = f32} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT:    %[[S:.*]] = graph.add %[[X]], %[[X]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[R:.*]] = graph.cast %[[S]] {to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT:    %[[U:.*]] = graph.cast %[[R]] {to = f32} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT:    %[[M:.*]] = graph.mul %[[U]], %[[X]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[Y:.*]] = graph.cast %[[M]] {to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT:    func.return %[[Y]]
func.func @chain(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %s = graph.add %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  %y = graph.mul %s, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  func.return %y : tensor<4xbf16>
}

// A comparison has no result to round.
// CHECK-LABEL: func.func @compare
// CHECK:         graph.compare %{{.*}}, %{{.*}} {predicate = "lt"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT:    func.return
func.func @compare(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xi1> {
  %z = graph.compare %x, %y {predicate = "lt"} : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  func.return %z : tensor<4xi1>
}

// From a float64 by way of float32; from or to a float32 as it is.
// CHECK-LABEL: func.func @casts
// CHECK-NEXT:    %[[W:.*]] = graph.cast %x {to = f32} : (tensor<4xf64>) -> tensor<4xf32>
// CHECK-NEXT:    %[[N:.*]] = graph.cast %[[W]] {to = f16} : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT:    %[[F:.*]] = graph.cast %[[N]] {to = f32} : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT:    func.return %[[F]]
func.func @casts(%x: tensor<4xf64>) -> tensor<4xf32> {
  %n = graph.cast %x {to = f16} : (tensor<4xf64>) -> tensor<4xf16>
  %f = graph.cast %n {to = f32} : (tensor<4xf16>) -> tensor<4xf32>
  func.return %f : tensor<4xf32>
}

// What only moves elements stays, and so does what computes with wider floats.
// CHECK-LABEL: func.func @left_alone
// CHECK-NEXT:    %[[T:.*]] = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x4xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:    %[[R:.*]] = graph.relu %y : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    func.return %[[T]], %[[R]]
func.func @left_alone(%x: tensor<2x4xf16>, %y: tensor<4xf32>) -> (tensor<4x2xf16>, tensor<4xf32>) {
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x4xf16>) -> tensor<4x2xf16>
  %r = graph.relu %y : (tensor<4xf32>) -> tensor<4xf32>
  func.return %t, %r : tensor<4x2xf16>, tensor<4xf32>
}
