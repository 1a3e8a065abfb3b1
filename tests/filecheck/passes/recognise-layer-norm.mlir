// RUN: irkit-opt %s -p recognise-layer-norm,dce | filecheck %s
// RUN: irkit-opt %s -p recognise-layer-norm --remarks=missed 2>&1 | filecheck %s --check-prefix=WHY

// CHECK-LABEL: func.func @centred
// CHECK-NEXT:  %[[Y:.*]] = graph.layer_norm %x {epsilon = {{9.99.*e-06|1.0*e-05}} : f64, centred = true} : (tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-NEXT:  func.return %[[Y]]
func.func @centred(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = arith.constant dense<1.0e-5> : tensor<f32>
  %0 = graph.reduce %x {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %1 = graph.sub %x, %0 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %2 = graph.mul %1, %1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %4 = graph.add %3, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %5 = graph.sqrt %4 : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %6 = graph.div %1, %5 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  func.return %6 : tensor<?x8xf32>
}

// Root mean square, times a reciprocal; the power says square, the sum has its number first.
// CHECK-LABEL: func.func @rms
// CHECK-NEXT:  %[[Y:.*]] = graph.layer_norm %x {epsilon = 5.000000e-01 : f64, centred = false}
// CHECK-NEXT:  func.return %[[Y]]
func.func @rms(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %e = arith.constant dense<0.5> : tensor<1xf32>
  %two = arith.constant dense<2.0> : tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %2 = graph.pow %x, %two : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %4 = graph.add %e, %3 : (tensor<1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %5 = graph.sqrt %4 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = graph.div %one, %5 : (tensor<f32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %7 = graph.mul %6, %x : (tensor<2x1xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %7 : tensor<2x8xf32>
}

// Rows of two dimensions, as those of instances; nothing is added.
// CHECK-LABEL: func.func @instances
// CHECK-NEXT:  %[[F:.*]] = graph.reshape %x {shape = array<i64: 2, 3, 20>}
// CHECK-NEXT:  %[[N:.*]] = graph.layer_norm %[[F]] {epsilon = 0.000000e+00 : f64, centred = true}
// CHECK-NEXT:  %[[Y:.*]] = graph.reshape %[[N]] {shape = array<i64: 2, 3, 4, 5>}
// CHECK-NEXT:  func.return %[[Y]]
func.func @instances(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = graph.reduce %x {kind = "mean", axes = array<i64: 3, 2>, keepdims = true} : (tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32>
  %1 = graph.sub %x, %0 : (tensor<2x3x4x5xf32>, tensor<2x3x1x1xf32>) -> tensor<2x3x4x5xf32>
  %2 = graph.mul %1, %1 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 2, 3>, keepdims = true} : (tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32>
  %5 = graph.sqrt %3 : (tensor<2x3x1x1xf32>) -> tensor<2x3x1x1xf32>
  %6 = graph.div %1, %5 : (tensor<2x3x4x5xf32>, tensor<2x3x1x1xf32>) -> tensor<2x3x4x5xf32>
  func.return %6 : tensor<2x3x4x5xf32>
}

// The difference is needed elsewhere too: it stays, and what divides it is no more than a root mean square.
// CHECK-LABEL: func.func @difference_is_read
// CHECK:       %[[D:.*]] = graph.sub
// CHECK-NEXT:  graph.layer_norm %[[D]] {epsilon = 0.000000e+00 : f64, centred = false}
func.func @difference_is_read(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = graph.reduce %x {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %1 = graph.sub %x, %0 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %2 = graph.mul %1, %1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %5 = graph.sqrt %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = graph.div %1, %5 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  func.return %1, %6 : tensor<2x8xf32>, tensor<2x8xf32>
}

// CHECK-LABEL: func.func @of_something_else
// CHECK-NOT:   graph.layer_norm
// WHY: remark: {{.*}}the squares are not those of what is divided
func.func @of_something_else(%x: tensor<2x8xf32>, %z: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %2 = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %5 = graph.sqrt %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = graph.div %z, %5 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  func.return %6 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @sum_of_squares
// CHECK-NOT:   graph.layer_norm
// WHY: remark: {{.*}}it divides by the root of no mean
func.func @sum_of_squares(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %2 = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = graph.reduce %2 {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %5 = graph.sqrt %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = graph.div %x, %5 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  func.return %6 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @other_dimensions
// CHECK-NOT:   graph.layer_norm
// WHY: remark: {{.*}}its mean is over dimensions [0], which are not the last ones
func.func @other_dimensions(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %2 = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 0>, keepdims = true} : (tensor<2x8xf32>) -> tensor<1x8xf32>
  %5 = graph.sqrt %3 : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %6 = graph.div %x, %5 : (tensor<2x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  func.return %6 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @root_is_read
// CHECK-NOT:   graph.layer_norm
// WHY: remark: {{.*}}something else reads the root
func.func @root_is_read(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x1xf32>) {
  %2 = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %5 = graph.sqrt %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = graph.div %x, %5 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  func.return %6, %5 : tensor<2x8xf32>, tensor<2x1xf32>
}

// Means as NumPy's are traced: sums, divided by how many they are of.
// CHECK-LABEL: func.func @sums_by_their_count
// CHECK-NEXT:  %[[Y:.*]] = graph.layer_norm %x {epsilon = 0.000000e+00 : f64, centred = true}
// CHECK-NEXT:  func.return %[[Y]]
func.func @sums_by_their_count(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %n = arith.constant dense<8.0> : tensor<f32>
  %s = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %0 = graph.div %s, %n : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %1 = graph.sub %x, %0 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %2 = graph.mul %1, %1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = graph.reduce %2 {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %3 = graph.div %t, %n : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = graph.sqrt %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = graph.div %1, %5 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  func.return %6 : tensor<2x8xf32>
}

// By another number they are no means.
// CHECK-LABEL: func.func @sums_by_another_number
// CHECK-NOT:   graph.layer_norm
func.func @sums_by_another_number(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %n = arith.constant dense<7.0> : tensor<f32>
  %2 = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = graph.reduce %2 {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %3 = graph.div %t, %n : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = graph.sqrt %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = graph.div %x, %5 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  func.return %6 : tensor<2x8xf32>
}
