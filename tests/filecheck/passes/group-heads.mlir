// RUN: irkit-opt %s -p group-heads,dce | filecheck %s
// RUN: irkit-opt %s -p group-heads --remarks=missed 2>&1 | filecheck %s --check-prefix=WHY

// CHECK-LABEL: func.func @heads
// CHECK-NEXT:  %[[Q:.*]] = graph.reshape %q {shape = array<i64: 2, 4, 5, 8>}
// CHECK-NEXT:  %[[Y:.*]] = graph.attention %[[Q]], %k, %v {scale = 1.000000e+00 : f64, causal = 2 : i64} : (tensor<2x4x5x8xf32>, tensor<2x1x7x8xf32>, tensor<2x1x7x8xf32>) -> tensor<2x4x5x8xf32>
// CHECK-NEXT:  %[[Z:.*]] = graph.reshape %[[Y]] {shape = array<i64: 8, 5, 8>}
// CHECK-NEXT:  func.return %[[Z]]
func.func @heads(%q: tensor<8x5x8xf32>, %k: tensor<2x1x7x8xf32>, %v: tensor<2x1x7x8xf32>) -> tensor<8x5x8xf32> {
  %0 = graph.expand %k {shape = array<i64: 2, 4, 7, 8>} : (tensor<2x1x7x8xf32>) -> tensor<2x4x7x8xf32>
  %1 = graph.reshape %0 {shape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %2 = graph.expand %v {shape = array<i64: 2, 4, 7, 8>} : (tensor<2x1x7x8xf32>) -> tensor<2x4x7x8xf32>
  %3 = graph.reshape %2 {shape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %4 = graph.attention %q, %1, %3 {scale = 1.0 : f64, causal = 2 : i64} : (tensor<8x5x8xf32>, tensor<8x7x8xf32>, tensor<8x7x8xf32>) -> tensor<8x5x8xf32>
  func.return %4 : tensor<8x5x8xf32>
}

// Heads of one row are the rows of one head. The mask says of each head what it sees.
// CHECK-LABEL: func.func @one_row
// CHECK-NEXT:  %[[Q:.*]] = graph.reshape %q {shape = array<i64: 3, 2, 4, 8>}
// CHECK-NEXT:  %[[K:.*]] = graph.reshape %k {shape = array<i64: 3, 2, 7, 8>}
// CHECK-NEXT:  %[[V:.*]] = graph.reshape %v {shape = array<i64: 3, 2, 7, 8>}
// CHECK-NEXT:  %[[M:.*]] = graph.reshape %m {shape = array<i64: 2, 4, 7>}
// CHECK-NEXT:  %[[Y:.*]] = graph.attention %[[Q]], %[[K]], %[[V]], %[[M]] {{.*}} -> tensor<3x2x4x8xf32>
// CHECK-NEXT:  graph.reshape %[[Y]] {shape = array<i64: 3, 8, 1, 8>}
func.func @one_row(%q: tensor<3x8x1x8xf32>, %k: tensor<3x2x1x7x8xf32>, %v: tensor<3x2x1x7x8xf32>, %m: tensor<8x1x7xi1>) -> tensor<3x8x1x8xf32> {
  %0 = graph.expand %k {shape = array<i64: 3, 2, 4, 7, 8>} : (tensor<3x2x1x7x8xf32>) -> tensor<3x2x4x7x8xf32>
  %1 = graph.reshape %0 {shape = array<i64: 3, 8, 7, 8>} : (tensor<3x2x4x7x8xf32>) -> tensor<3x8x7x8xf32>
  %2 = graph.expand %v {shape = array<i64: 3, 2, 4, 7, 8>} : (tensor<3x2x1x7x8xf32>) -> tensor<3x2x4x7x8xf32>
  %3 = graph.reshape %2 {shape = array<i64: 3, 8, 7, 8>} : (tensor<3x2x4x7x8xf32>) -> tensor<3x8x7x8xf32>
  %4 = graph.attention %q, %1, %3, %m {scale = 1.0 : f64} : (tensor<3x8x1x8xf32>, tensor<3x8x7x8xf32>, tensor<3x8x7x8xf32>, tensor<8x1x7xi1>) -> tensor<3x8x1x8xf32>
  func.return %4 : tensor<3x8x1x8xf32>
}

// Two transpositions that undo each other stand between, as recognise-attention leaves them.
// CHECK-LABEL: func.func @turned_back
// CHECK-NOT:   graph.expand
// CHECK:       graph.attention %{{.*}}, %k, %v
func.func @turned_back(%q: tensor<8x5x8xf32>, %k: tensor<2x1x7x8xf32>, %v: tensor<2x1x7x8xf32>) -> tensor<8x5x8xf32> {
  %0 = graph.expand %k {shape = array<i64: 2, 4, 7, 8>} : (tensor<2x1x7x8xf32>) -> tensor<2x4x7x8xf32>
  %1 = graph.reshape %0 {shape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %t = graph.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<8x7x8xf32>) -> tensor<8x8x7xf32>
  %u = graph.transpose %t {permutation = array<i64: 0, 2, 1>} : (tensor<8x8x7xf32>) -> tensor<8x7x8xf32>
  %2 = graph.expand %v {shape = array<i64: 2, 4, 7, 8>} : (tensor<2x1x7x8xf32>) -> tensor<2x4x7x8xf32>
  %3 = graph.reshape %2 {shape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %4 = graph.attention %q, %u, %3 {scale = 1.0 : f64} : (tensor<8x5x8xf32>, tensor<8x7x8xf32>, tensor<8x7x8xf32>) -> tensor<8x5x8xf32>
  func.return %4 : tensor<8x5x8xf32>
}

// Keys are not repeated as values are.
// CHECK-LABEL: func.func @others
// CHECK:       graph.attention %q, %k, %{{.*}} {scale
// WHY: remark: {{.*}}its keys and values are not those of fewer heads, repeated
func.func @others(%q: tensor<8x5x8xf32>, %k: tensor<8x7x8xf32>, %v: tensor<2x1x7x8xf32>) -> tensor<8x5x8xf32> {
  %2 = graph.expand %v {shape = array<i64: 2, 4, 7, 8>} : (tensor<2x1x7x8xf32>) -> tensor<2x4x7x8xf32>
  %3 = graph.reshape %2 {shape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %4 = graph.attention %q, %k, %3 {scale = 1.0 : f64} : (tensor<8x5x8xf32>, tensor<8x7x8xf32>, tensor<8x7x8xf32>) -> tensor<8x5x8xf32>
  func.return %4 : tensor<8x5x8xf32>
}
