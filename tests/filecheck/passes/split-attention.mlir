// RUN: irkit-opt %s -p 'split-attention{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p 'split-attention{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=WHY
// RUN: irkit-opt %s -p split-attention | filecheck %s --check-prefix=NONE

// NONE-NOT: parts =

// CHECK-LABEL: func.func @step
// CHECK-NEXT:  %[[P:.*]] = graph.attention %q, %k, %v {scale = 1.250000e-01 : f64, parts = [[N:[0-9]+]] : i64} : (tensor<8x1x64xf32>, tensor<8x16384x64xf32>, tensor<8x16384x32xf32>) -> tensor<8x[[N]]x1x33xf32>
// CHECK-NEXT:  %[[T:.*]] = graph.transpose %[[P]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT:  %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<1x1x1x1xf32>
// CHECK-NEXT:  %[[W:.*]] = graph.slice %[[T]] {offsets = array<i64: 0, 0, 0, 32>, sizes = array<i64: 8, 1, [[N]], 1>,
// CHECK-NEXT:  %[[V:.*]] = graph.slice %[[T]] {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 8, 1, [[N]], 32>,
// CHECK-NEXT:  %[[Y:.*]] = graph.attention %[[ONE]], %[[W]], %[[V]] {scale = 1.000000e+00 : f64}
// CHECK-NEXT:  graph.reshape %[[Y]] {shape = array<i64: 8, 1, 32>}
func.func @step(%q: tensor<8x1x64xf32>, %k: tensor<8x16384x64xf32>, %v: tensor<8x16384x32xf32>) -> tensor<8x1x32xf32> {
  %y = graph.attention %q, %k, %v {scale = 1.25e-1 : f64} : (tensor<8x1x64xf32>, tensor<8x16384x64xf32>, tensor<8x16384x32xf32>) -> tensor<8x1x32xf32>
  func.return %y : tensor<8x1x32xf32>
}

// What is ahead is hidden by a mask.
// CHECK-LABEL: func.func @causal
// CHECK:       %[[A:.*]] = arith.constant {{.*}} : tensor<3x16384xi1>
// CHECK:       %[[M:.*]] = graph.and %m, %[[A]] : (tensor<16384xi1>, tensor<3x16384xi1>) -> tensor<3x16384xi1>
// CHECK-NEXT:  graph.attention %q, %k, %k, %[[M]] {scale = 1.000000e+00 : f64, parts =
func.func @causal(%q: tensor<8x3x64xf32>, %k: tensor<8x16384x64xf32>, %m: tensor<16384xi1>) -> tensor<8x3x64xf32> {
  %y = graph.attention %q, %k, %k, %m {scale = 1.0 : f64, causal = 16381 : i64} : (tensor<8x3x64xf32>, tensor<8x16384x64xf32>, tensor<8x16384x64xf32>, tensor<16384xi1>) -> tensor<8x3x64xf32>
  func.return %y : tensor<8x3x64xf32>
}

// CHECK-LABEL: func.func @many_rows
// CHECK-NOT:   parts
// WHY: remark: {{.*}}each vEU has rows of its own, or keys are few
func.func @many_rows(%q: tensor<128x1x64xf32>, %k: tensor<128x1024x64xf32>) -> tensor<128x1x64xf32> {
  %y = graph.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<128x1x64xf32>, tensor<128x1024x64xf32>, tensor<128x1024x64xf32>) -> tensor<128x1x64xf32>
  func.return %y : tensor<128x1x64xf32>
}

// CHECK-LABEL: func.func @open_batch
// CHECK-NOT:   parts
// WHY: remark: {{.*}}its sizes are not all known
func.func @open_batch(%q: tensor<?x1x64xf32>, %k: tensor<1024x64xf32>) -> tensor<?x1x64xf32> {
  %e = graph.reshape %k {shape = array<i64: 1, 1024, 64>} : (tensor<1024x64xf32>) -> tensor<1x1024x64xf32>
  %y = graph.attention %q, %e, %e {scale = 1.0 : f64} : (tensor<?x1x64xf32>, tensor<1x1024x64xf32>, tensor<1x1024x64xf32>) -> tensor<?x1x64xf32>
  func.return %y : tensor<?x1x64xf32>
}
