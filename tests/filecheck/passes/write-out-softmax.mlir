// RUN: irkit-opt %s -p 'write-out-softmax{device="cpu2"}' | filecheck %s
// RUN: irkit-opt %s -p 'write-out-softmax{device="h200"},write-out-softmax' | filecheck %s --check-prefix=STAYS
// RUN: irkit-opt %s -p 'write-out-softmax{device="cpu2"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=WHY

// CHECK-LABEL: func.func @columns
// CHECK-NEXT:  %[[MOST:.*]] = graph.reduce %x {kind = "max", axes = array<i64: 0>, keepdims = true} : (tensor<3x8xf64>) -> tensor<1x8xf64>
// CHECK-NEXT:  %[[LESS:.*]] = graph.sub %x, %[[MOST]]
// CHECK-NEXT:  %[[E:.*]] = graph.exp %[[LESS]]
// CHECK-NEXT:  %[[SUM:.*]] = graph.reduce %[[E]] {kind = "sum", axes = array<i64: 0>, keepdims = true} : (tensor<3x8xf64>) -> tensor<1x8xf64>
// CHECK-NEXT:  %[[Y:.*]] = graph.div %[[E]], %[[SUM]]
// CHECK-NEXT:  func.return %[[Y]]
// STAYS-LABEL: func.func @columns
// STAYS-NEXT:  graph.softmax %x {axis = 0 : i64}
func.func @columns(%x: tensor<3x8xf64>) -> tensor<3x8xf64> {
  %y = graph.softmax %x {axis = 0 : i64} : (tensor<3x8xf64>) -> tensor<3x8xf64>
  func.return %y : tensor<3x8xf64>
}

// Of any number of images.
// CHECK-LABEL: func.func @channels
// CHECK-NOT:   graph.softmax
func.func @channels(%x: tensor<?x3x2x4xf32>) -> tensor<?x3x2x4xf32> {
  %y = graph.softmax %x {axis = 1 : i64} : (tensor<?x3x2x4xf32>) -> tensor<?x3x2x4xf32>
  func.return %y : tensor<?x3x2x4xf32>
}

// Rows; columns of which few lie side by side; what would be rounded.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: graph.softmax
// WHY: write-out-softmax/WriteOut: 'graph.softmax': fewer than 8 columns lie side by side
// WHY: write-out-softmax/WriteOut: 'graph.softmax': fewer than 8 columns lie side by side
// WHY: write-out-softmax/WriteOut: 'graph.softmax': its steps would be rounded to 16 bits
func.func @others(%x: tensor<3x9xf32>, %y: tensor<9x7xf32>, %z: tensor<3x9xf16>)
    -> (tensor<3x9xf32>, tensor<9x7xf32>, tensor<3x9xf16>) {
  %0 = graph.softmax %x {axis = 1 : i64} : (tensor<3x9xf32>) -> tensor<3x9xf32>
  %1 = graph.softmax %y {axis = 0 : i64} : (tensor<9x7xf32>) -> tensor<9x7xf32>
  %2 = graph.softmax %z {axis = 0 : i64} : (tensor<3x9xf16>) -> tensor<3x9xf16>
  func.return %0, %1, %2 : tensor<3x9xf32>, tensor<9x7xf32>, tensor<3x9xf16>
}
