// RUN: irkit-opt %s -p pads-to-concat | filecheck %s
// RUN: irkit-opt %s -p pads-to-concat --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// The gradients of three slices of one value, in the order in which they come; 0.0 + -0.0 is 0.0.
// CHECK-LABEL: func.func @queries_keys_values
// CHECK-NEXT: %[[C:.*]] = graph.concat(%q, %k, %v) {axis = 1 : i64} : {{.*}} -> tensor<5x10x3xf32>
// CHECK-NEXT: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[Y:.*]] = graph.add %[[C]], %[[Z]] : (tensor<5x10x3xf32>, tensor<f32>)
// CHECK-NEXT: func.return %[[Y]]
// MISSED: it is part of a sum that is one too
func.func @queries_keys_values(%q: tensor<5x4x3xf32>, %k: tensor<5x4x3xf32>, %v: tensor<5x2x3xf32>) -> tensor<5x10x3xf32> {
  %0 = graph.pad %v {low = array<i64: 0, 8, 0>, high = array<i64: 0, 0, 0>, value = 0.0 : f64} : (tensor<5x2x3xf32>) -> tensor<5x10x3xf32>
  %1 = graph.pad %q {low = array<i64: 0, 0, 0>, high = array<i64: 0, 6, 0>, value = 0.0 : f64} : (tensor<5x4x3xf32>) -> tensor<5x10x3xf32>
  %2 = graph.add %0, %1 : (tensor<5x10x3xf32>, tensor<5x10x3xf32>) -> tensor<5x10x3xf32>
  %3 = graph.pad %k {low = array<i64: 0, 4, 0>, high = array<i64: 0, 2, 0>, value = 0.0 : f64} : (tensor<5x4x3xf32>) -> tensor<5x10x3xf32>
  %4 = graph.add %2, %3 : (tensor<5x10x3xf32>, tensor<5x10x3xf32>) -> tensor<5x10x3xf32>
  func.return %4 : tensor<5x10x3xf32>
}

// What no part has is zero, between two and around all; integers need no zero added. The batch is not padded.
// CHECK-LABEL: func.func @gaps
// CHECK-NEXT: %[[A:.*]] = graph.pad %a {low = array<i64: 0, 1>, high = array<i64: 0, 3>, value = 0.{{.*}} -> tensor<?x6xi32>
// CHECK-NEXT: %[[B:.*]] = graph.pad %b {low = array<i64: 0, 0>, high = array<i64: 0, 2>, value = 0.{{.*}} -> tensor<?x5xi32>
// CHECK-NEXT: graph.concat(%[[A]], %[[B]]) {axis = 1 : i64}
func.func @gaps(%a: tensor<?x2xi32>, %b: tensor<?x3xi32>) -> tensor<?x11xi32> {
  %0 = graph.pad %a {low = array<i64: 0, 1>, high = array<i64: 0, 8>, value = 0.0 : f64} : (tensor<?x2xi32>) -> tensor<?x11xi32>
  %1 = graph.pad %b {low = array<i64: 0, 6>, high = array<i64: 0, 2>, value = 0.0 : f64} : (tensor<?x3xi32>) -> tensor<?x11xi32>
  %2 = graph.add %0, %1 : (tensor<?x11xi32>, tensor<?x11xi32>) -> tensor<?x11xi32>
  func.return %2 : tensor<?x11xi32>
}

// Others are added to what is joined. Parts that lie behind one another are each computed where they lie.
// CHECK-LABEL: func.func @and_others
// CHECK: %[[A:.*]] = graph.add %a, %{{.*}} : (tensor<2xf64>, tensor<f64>)
// CHECK: %[[B:.*]] = graph.add %b, %{{.*}} : (tensor<3xf64>, tensor<f64>)
// CHECK: %[[C:.*]] = graph.concat(%[[A]], %[[B]])
// CHECK: graph.add %[[C]], %x
func.func @and_others(%a: tensor<2xf64>, %b: tensor<3xf64>, %x: tensor<5xf64>) -> tensor<5xf64> {
  %0 = graph.pad %a {low = array<i64: 0>, high = array<i64: 3>, value = 0.0 : f64} : (tensor<2xf64>) -> tensor<5xf64>
  %1 = graph.pad %b {low = array<i64: 2>, high = array<i64: 0>, value = 0.0 : f64} : (tensor<3xf64>) -> tensor<5xf64>
  %2 = graph.add %0, %1 : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %3 = graph.add %2, %x : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  func.return %3 : tensor<5xf64>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: graph.concat
// MISSED: terms overlap
// MISSED: terms are not padded along one axis
// MISSED: a term is not padded with zeros
// MISSED: a term is not padded with zeros
// MISSED: a term has no elements
func.func @left_alone(%a: tensor<2x2xf32>, %b: tensor<2x3xf32>, %c: tensor<1x4xf32>, %e: tensor<2x0xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = graph.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 2>, value = 0.0 : f64} : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %1 = graph.pad %b {low = array<i64: 0, 1>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<2x3xf32>) -> tensor<2x4xf32>
  %2 = graph.pad %c {low = array<i64: 1, 0>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<1x4xf32>) -> tensor<2x4xf32>
  %3 = graph.pad %a {low = array<i64: 0, 2>, high = array<i64: 0, 0>, value = -0.0 : f64} : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %4 = graph.pad %a {low = array<i64: 0, 2>, high = array<i64: 0, 0>, value = 1.0 : f64} : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %5 = graph.pad %e {low = array<i64: 0, 4>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<2x0xf32>) -> tensor<2x4xf32>
  %6 = graph.add %0, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %7 = graph.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %8 = graph.add %0, %3 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %9 = graph.add %0, %4 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %10 = graph.add %0, %5 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %6, %7, %8, %9, %10 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
