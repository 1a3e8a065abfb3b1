// RUN: irkit-opt %s -p batch-to-front | filecheck %s
// RUN: irkit-opt %s -p batch-to-front,batch-to-front | filecheck %s
// RUN: irkit-opt %s -p batch-to-front --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// Steps × batch × features: the host moves the argument, and the op works one axis further on.
// CHECK-LABEL: func.func @steps(%x: tensor<?x5x4xf32>) -> tensor<?x4xf32> attributes {irkit.input_batch = [array<i64: 1, 1, 1>]} {
func.func @steps(%x: tensor<5x?x4xf32>) -> tensor<?x4xf32> {
  // CHECK-NEXT: %[[X:.*]] = graph.reshape %x {shape = array<i64: -9223372036854775808, 5, 1, 4>} : (tensor<?x5x4xf32>) -> tensor<?x5x1x4xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.reduce %[[X]] {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<?x5x1x4xf32>) -> tensor<?x1x4xf32>
  // CHECK-NEXT: %[[Z:.*]] = graph.reshape %[[Y]] {shape = array<i64: -9223372036854775808, 4>} : (tensor<?x1x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: func.return %[[Z]] : tensor<?x4xf32>
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<5x?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Two heads in the dimension of the batch, which the caller gets back as they were.
// CHECK-LABEL: func.func @heads(%x: tensor<?x6xf32>) -> tensor<?x2x3xf32> attributes {irkit.output_batch = [array<i64: 0, 1, 2>]} {
func.func @heads(%x: tensor<?x6xf32>) -> tensor<?x3xf32> {
  // CHECK-NEXT: %[[X:.*]] = graph.reshape %x {shape = array<i64: -9223372036854775808, 1, 6>} : (tensor<?x6xf32>) -> tensor<?x1x6xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.reshape %[[X]] {shape = array<i64: -9223372036854775808, 2, 3>} : (tensor<?x1x6xf32>) -> tensor<?x2x3xf32>
  // CHECK-NEXT: func.return %[[Y]] : tensor<?x2x3xf32>
  %y = graph.reshape %x {shape = array<i64: -9223372036854775808, 3>} : (tensor<?x6xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// Where rows mix there is nothing to move to.
// CHECK-LABEL: func.func @mixed(%x: tensor<4x?xf32>) -> tensor<4xf32> {
// CHECK-NEXT: graph.reduce %x {{.*}}axes = array<i64: 1>
// MISSED: remark: [missed] batch-to-front/MoveBatch: 'graph.reduce': rows of the batch mix: sum over dimension 1, which is the batch
func.func @mixed(%x: tensor<4x?xf32>) -> tensor<4xf32> {
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<4x?xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// MISSED: remark: [missed] batch-to-front/MoveBatch: 'graph.lrn': it has no form with another batch than its leading dimension
// CHECK-LABEL: func.func @samples(%x: tensor<?x2x3x4xf32>) -> tensor<?x3x4xf32> {
func.func @samples(%x: tensor<?x2x3x4xf32>) -> tensor<?x3x4xf32> {
  %s = graph.reshape %x {shape = array<i64: -9223372036854775808, 3, 4>} : (tensor<?x2x3x4xf32>) -> tensor<?x3x4xf32>
  // CHECK: graph.lrn
  %y = graph.lrn %s {size = 3 : i64, alpha = 1.0e-4 : f64, beta = 0.75 : f64, bias = 1.0 : f64} : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  func.return %y : tensor<?x3x4xf32>
}

// CHECK-LABEL: func.func @leads(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
// CHECK-NEXT: graph.exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
func.func @leads(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = graph.exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Below the graph level it has nothing to do.
// CHECK-LABEL: func.func @tensors(%x: tensor<4x?xf32>, %i: tensor<4x?xf32>) -> tensor<4x?xf32> {
// CHECK-NEXT: linalg.generic
func.func @tensors(%x: tensor<4x?xf32>, %i: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x?xf32>) outs(%i : tensor<4x?xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  } -> tensor<4x?xf32>
  func.return %y : tensor<4x?xf32>
}
