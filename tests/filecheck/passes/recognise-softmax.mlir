// RUN: irkit-opt %s -p recognise-softmax,dce | filecheck %s
// RUN: irkit-opt %s -p recognise-softmax --remarks=missed 2>&1 | filecheck %s --check-prefix=WHY
// RUN: irkit-opt %s -p 'recognise-softmax{device="cpu2" rows=true},dce' | filecheck %s --check-prefix=ROWS
// RUN: irkit-opt %s -p 'recognise-softmax{device="h200" rows=true},dce' | filecheck %s --check-prefix=GPU

// ROWS-LABEL: func.func @rows
// ROWS:        graph.softmax
// GPU-NOT:     graph.softmax
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:  %[[Y:.*]] = graph.softmax %x {axis = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-NEXT:  func.return %[[Y]]
func.func @rows(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = graph.reduce %x {kind = "max", axes = array<i64: 1>, keepdims = true} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %1 = graph.sub %x, %0 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %2 = graph.exp %1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = graph.reduce %2 {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %4 = graph.div %2, %3 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  func.return %4 : tensor<?x8xf32>
}

// Along another dimension than the last, put back by reshapes.
// ROWS-LABEL: func.func @columns
// ROWS-NOT:   graph.softmax
// CHECK-LABEL: func.func @columns
// CHECK-NEXT:  graph.softmax %x {axis = 0 : i64} : (tensor<3x8xf64>) -> tensor<3x8xf64>
func.func @columns(%x: tensor<3x8xf64>) -> tensor<3x8xf64> {
  %0 = graph.reduce %x {kind = "max", axes = array<i64: 0>, keepdims = false} : (tensor<3x8xf64>) -> tensor<8xf64>
  %r = graph.reshape %0 {shape = array<i64: 1, 8>} : (tensor<8xf64>) -> tensor<1x8xf64>
  %1 = graph.sub %x, %r : (tensor<3x8xf64>, tensor<1x8xf64>) -> tensor<3x8xf64>
  %2 = graph.exp %1 : (tensor<3x8xf64>) -> tensor<3x8xf64>
  %3 = graph.reduce %2 {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<3x8xf64>) -> tensor<8xf64>
  %s = graph.reshape %3 {shape = array<i64: 1, 8>} : (tensor<8xf64>) -> tensor<1x8xf64>
  %4 = graph.div %2, %s : (tensor<3x8xf64>, tensor<1x8xf64>) -> tensor<3x8xf64>
  func.return %4 : tensor<3x8xf64>
}

// The exponentials are a result; the sum is of other rows; what is taken away is not the largest; no exponentials.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT:   graph.softmax
// WHY-DAG: something else reads the exponentials
// WHY-DAG: it does not take away the largest elements of the same rows
// WHY-DAG: there is no max where one is looked for
// WHY-DAG: it divides no exponentials
// WHY-DAG: its sum is not along one dimension
func.func @left_alone(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = graph.reduce %x {kind = "max", axes = array<i64: 1>, keepdims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %1 = graph.sub %x, %0 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %2 = graph.exp %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = graph.reduce %2 {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %4 = graph.div %2, %3 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %5 = graph.exp %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = graph.reduce %5 {kind = "sum", axes = array<i64: 0>, keepdims = true} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %7 = graph.div %5, %6 : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  %8 = graph.reduce %x {kind = "min", axes = array<i64: 1>, keepdims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %9 = graph.sub %x, %8 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %10 = graph.exp %9 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %11 = graph.reduce %10 {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %12 = graph.div %10, %11 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %13 = graph.div %x, %3 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %14 = graph.exp %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %15 = graph.reduce %14 {kind = "sum", axes = array<i64: 0, 1>, keepdims = true} : (tensor<8x8xf32>) -> tensor<1x1xf32>
  %16 = graph.div %14, %15 : (tensor<8x8xf32>, tensor<1x1xf32>) -> tensor<8x8xf32>
  func.return %2, %4, %7, %12, %13, %16 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
