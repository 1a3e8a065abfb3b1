// RUN: irkit-opt %s -p unroll-recurrence,canonicalize | filecheck %s
// RUN: irkit-opt %s -p unroll-recurrence | filecheck %s --check-prefix=ALONE

// The cells of the second layer read those of the first: no slice of a concat is left between them.
// CHECK-LABEL: func.func @stack
// CHECK-NOT: graph.lstm 
// CHECK: %[[X0:.*]] = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 1, 3>
// CHECK-NEXT: %[[R0:.*]] = graph.reshape %[[X0]] {shape = array<i64: 1, 3>}
// CHECK: %[[X1:.*]] = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 1, 3>
// CHECK-NEXT: %[[R1:.*]] = graph.reshape %[[X1]] {shape = array<i64: 1, 3>}
// CHECK: %[[X2:.*]] = graph.slice %x {offsets = array<i64: 2, 0, 0>, sizes = array<i64: 1, 1, 3>
// CHECK-NEXT: %[[R2:.*]] = graph.reshape %[[X2]] {shape = array<i64: 1, 3>}
// CHECK: %[[X3:.*]] = graph.slice %x {offsets = array<i64: 3, 0, 0>, sizes = array<i64: 1, 1, 3>
// CHECK-NEXT: %[[R3:.*]] = graph.reshape %[[X3]] {shape = array<i64: 1, 3>}
// CHECK: %[[X4:.*]] = graph.slice %x {offsets = array<i64: 4, 0, 0>, sizes = array<i64: 1, 1, 3>
// CHECK-NEXT: %[[R4:.*]] = graph.reshape %[[X4]] {shape = array<i64: 1, 3>}
// CHECK: %[[A0:.*]], %[[C0:.*]] = graph.lstm_cell %[[R0]], %z, %z, %w0, %r0, %b0 
// CHECK-NEXT: %[[A1:.*]], %[[C1:.*]] = graph.lstm_cell %[[R1]], %[[A0]], %[[C0]], %w0, %r0, %b0 
// CHECK-NEXT: %[[A2:.*]], %[[C2:.*]] = graph.lstm_cell %[[R2]], %[[A1]], %[[C1]], %w0, %r0, %b0 
// CHECK-NEXT: %[[A3:.*]], %[[C3:.*]] = graph.lstm_cell %[[R3]], %[[A2]], %[[C2]], %w0, %r0, %b0 
// CHECK-NEXT: %[[A4:.*]], %[[C4:.*]] = graph.lstm_cell %[[R4]], %[[A3]], %[[C3]], %w0, %r0, %b0 
// CHECK-NOT: graph.slice
// CHECK-NOT: graph.concat
// CHECK: %[[B0:.*]], %[[D0:.*]] = graph.lstm_cell %[[A0]], %z, %z, %w1, %r1, %b1 
// CHECK-NEXT: %[[B1:.*]], %[[D1:.*]] = graph.lstm_cell %[[A1]], %[[B0]], %[[D0]], %w1, %r1, %b1 
// CHECK-NEXT: %[[B2:.*]], %[[D2:.*]] = graph.lstm_cell %[[A2]], %[[B1]], %[[D1]], %w1, %r1, %b1 
// CHECK-NEXT: %[[B3:.*]], %[[D3:.*]] = graph.lstm_cell %[[A3]], %[[B2]], %[[D2]], %w1, %r1, %b1 
// CHECK-NEXT: %[[B4:.*]], %[[D4:.*]] = graph.lstm_cell %[[A4]], %[[B3]], %[[D3]], %w1, %r1, %b1 
// CHECK-NEXT: %[[Y0:.*]] = graph.reshape %[[B0]] {shape = array<i64: 1, 1, 4>}
// CHECK-NEXT: %[[Y1:.*]] = graph.reshape %[[B1]] {shape = array<i64: 1, 1, 4>}
// CHECK-NEXT: %[[Y2:.*]] = graph.reshape %[[B2]] {shape = array<i64: 1, 1, 4>}
// CHECK-NEXT: %[[Y3:.*]] = graph.reshape %[[B3]] {shape = array<i64: 1, 1, 4>}
// CHECK-NEXT: %[[Y4:.*]] = graph.reshape %[[B4]] {shape = array<i64: 1, 1, 4>}
// CHECK-NEXT: %[[Y:.*]] = graph.concat(%[[Y0]], %[[Y1]], %[[Y2]], %[[Y3]], %[[Y4]]) {axis = 0 : i64}
// CHECK-NEXT: func.return %[[Y]], %[[A4]], %[[D4]] 
func.func @stack(%x: tensor<5x1x3xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %z = arith.constant dense<0.0> : tensor<1x4xf32>
  %w0 = arith.constant dense<0.5> : tensor<16x3xf32>
  %r0 = arith.constant dense<0.25> : tensor<16x4xf32>
  %b0 = arith.constant dense<0.125> : tensor<16xf32>
  %w1 = arith.constant dense<0.5> : tensor<16x4xf32>
  %r1 = arith.constant dense<0.25> : tensor<16x4xf32>
  %b1 = arith.constant dense<0.125> : tensor<16xf32>
  %y0, %h0, %c0 = graph.lstm %x, %z, %z, %w0, %r0, %b0 : (tensor<5x1x3xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x3xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  %s = graph.reshape %y0 {shape = array<i64: 5, 1, 1, 4>} : (tensor<5x1x4xf32>) -> tensor<5x1x1x4xf32>
  %t = graph.transpose %s {permutation = array<i64: 0, 2, 1, 3>} : (tensor<5x1x1x4xf32>) -> tensor<5x1x1x4xf32>
  %m = graph.reshape %t {shape = array<i64: 5, 1, 4>} : (tensor<5x1x1x4xf32>) -> tensor<5x1x4xf32>
  %y1, %h1, %c1 = graph.lstm %m, %z, %z, %w1, %r1, %b1 : (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  func.return %y1, %h0, %c1 : tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}

// Only the last step is read, through the stacked output: it is the last cell.
// CHECK-LABEL: func.func @last_step
// CHECK: %{{.*}}, %{{.*}} = graph.lstm_cell
// CHECK-NEXT: %[[H:.*]], %{{.*}} = graph.lstm_cell
// CHECK-NEXT: func.return %[[H]] 
// ALONE-LABEL: func.func @last_step
// ALONE: graph.concat
// ALONE-NEXT: graph.reshape
// ALONE-NEXT: graph.slice
func.func @last_step(%x: tensor<2x1x3xf32>) -> tensor<1x4xf32> {
  %z = arith.constant dense<0.0> : tensor<1x4xf32>
  %w0 = arith.constant dense<0.5> : tensor<16x3xf32>
  %r0 = arith.constant dense<0.25> : tensor<16x4xf32>
  %b0 = arith.constant dense<0.125> : tensor<16xf32>
  %y0, %h0, %c0 = graph.lstm %x, %z, %z, %w0, %r0, %b0 : (tensor<2x1x3xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x3xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<2x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  %m = graph.reshape %y0 {shape = array<i64: 2, 4>} : (tensor<2x1x4xf32>) -> tensor<2x4xf32>
  %l = graph.slice %m {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  func.return %l : tensor<1x4xf32>
}

// The number of steps is not known.
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT: graph.lstm_cell
// CHECK: graph.lstm %x
func.func @dynamic(%x: tensor<?x1x3xf32>, %z: tensor<1x4xf32>) -> tensor<?x1x4xf32> {
  %w0 = arith.constant dense<0.5> : tensor<16x3xf32>
  %r0 = arith.constant dense<0.25> : tensor<16x4xf32>
  %b0 = arith.constant dense<0.125> : tensor<16xf32>
  %y, %h, %c = graph.lstm %x, %z, %z, %w0, %r0, %b0 : (tensor<?x1x3xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x3xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<?x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  func.return %y : tensor<?x1x4xf32>
}

// In reverse the last step is first, and the outputs stay in the order of the steps.
// CHECK-LABEL: func.func @reverse
// CHECK: %[[X1:.*]] = graph.slice %x {offsets = array<i64: 1, 0, 0>
// CHECK-NEXT: %[[R1:.*]] = graph.reshape %[[X1]]
// CHECK: %[[H1:.*]] = graph.gru_cell %[[R1]], %z, %w, %r, %b {linear_before_reset = true}
// CHECK-NEXT: %[[H0:.*]] = graph.gru_cell %{{.*}}, %[[H1]], %w, %r, %b {linear_before_reset = true}
// CHECK-NEXT: %[[Y0:.*]] = graph.reshape %[[H0]]
// CHECK-NEXT: %[[Y1:.*]] = graph.reshape %[[H1]]
// CHECK-NEXT: %[[Y:.*]] = graph.concat(%[[Y0]], %[[Y1]])
// CHECK-NEXT: func.return %[[Y]], %[[H0]]
func.func @reverse(%x: tensor<2x1x3xf32>, %z: tensor<1x4xf32>, %w: tensor<12x3xf32>, %r: tensor<12x4xf32>, %b: tensor<16xf32>) -> (tensor<2x1x4xf32>, tensor<1x4xf32>) {
  %y, %h = graph.gru %x, %z, %w, %r, %b {linear_before_reset = true, reverse = true} : (tensor<2x1x3xf32>, tensor<1x4xf32>, tensor<12x3xf32>, tensor<12x4xf32>, tensor<16xf32>) -> (tensor<2x1x4xf32>, tensor<1x4xf32>)
  func.return %y, %h : tensor<2x1x4xf32>, tensor<1x4xf32>
}

// CHECK-LABEL: func.func @plain
// CHECK: graph.rnn_cell %{{.*}}, %z, %w, %r, %b {activations = ["relu"]}
// CHECK-NOT: {{graph\.rnn }}
func.func @plain(%x: tensor<2x1x3xf32>, %z: tensor<1x4xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<2x1x4xf32> {
  %y, %h = graph.rnn %x, %z, %w, %r, %b {activations = ["relu"]} : (tensor<2x1x3xf32>, tensor<1x4xf32>, tensor<4x3xf32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<2x1x4xf32>, tensor<1x4xf32>)
  func.return %y : tensor<2x1x4xf32>
}
