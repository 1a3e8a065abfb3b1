// RUN: irkit-opt %s -p 'split-reductions{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p 'split-reductions{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'split-reductions{device="cpu2"}' | filecheck %s --check-prefix=CPU

// What the sum is of is computed in parts too.
// CHECK-LABEL: func.func @whole
// CHECK: %[[X:.*]] = graph.reshape %x {shape = array<i64: 512, 8192>}
// CHECK: %[[E:.*]] = graph.exp %[[X]] : (tensor<512x8192xf32>) -> tensor<512x8192xf32>
// CHECK: %[[P:.*]] = graph.reduce %[[E]] {kind = "sum", axes = array<i64: 1>, keepdims = false} : {{.*}} -> tensor<512xf32>
// CHECK: %[[Y:.*]] = graph.reduce %[[P]] {kind = "sum", axes = array<i64: 0>, keepdims = false} : {{.*}} -> tensor<f32>
// CHECK: func.return %[[Y]]
// CPU-LABEL: func.func @whole
// CPU-COUNT-1: graph.reduce
// CPU-NOT: graph.reduce
// CPU-LABEL: func.func @behind
func.func @whole(%x: tensor<4194304xf32>) -> tensor<f32> {
  %e = graph.exp %x : (tensor<4194304xf32>) -> tensor<4194304xf32>
  %y = graph.reduce %e {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<4194304xf32>) -> tensor<f32>
  func.return %y : tensor<f32>
}

// A prime number of terms: what is left is behind the parts.
// CHECK-LABEL: func.func @behind
// CHECK: graph.slice %x {offsets = array<i64: 0>, sizes = array<i64: 40960>, strides = array<i64: 1>}
// CHECK: %[[P:.*]] = graph.reduce {{.*}} {kind = "max", axes = array<i64: 1>, keepdims = false} : (tensor<{{.*}}xf64>) -> tensor<{{.*}}xf64>
// CHECK: %[[R:.*]] = graph.slice %x {offsets = array<i64: 40960>, sizes = array<i64: {{.*}}>
// CHECK: %[[C:.*]] = graph.concat(%[[P]], %[[R]])
// CHECK: %[[Y:.*]] = graph.reduce %[[C]] {kind = "max"
// CHECK: graph.reshape %[[Y]] {shape = array<i64: 1>}
func.func @behind(%x: tensor<40973xf64>) -> tensor<1xf64> {
  %y = graph.reduce %x {kind = "max", axes = array<i64: 0>, keepdims = true} : (tensor<40973xf64>) -> tensor<1xf64>
  func.return %y : tensor<1xf64>
}

// Leading dimensions together, three results.
// CHECK-LABEL: func.func @columns
// CHECK: graph.reshape %x {shape = array<i64: {{[0-9]+}}, {{[0-9]+}}, 3>}
// CHECK: graph.reduce %{{.*}} {kind = "sum", axes = array<i64: 1>
// CHECK: graph.reduce %{{.*}} {kind = "sum", axes = array<i64: 0>, keepdims = false} : {{.*}} -> tensor<3xi64>
func.func @columns(%x: tensor<256x128x3xi64>) -> tensor<3xi64> {
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 0, 1>, keepdims = false} : (tensor<256x128x3xi64>) -> tensor<3xi64>
  func.return %y : tensor<3xi64>
}

// Rows are cut where columns are too few for all vEUs: each part reads whole lines of them. A mean is divided
// at the end; what is the same for all terms of a row, or for all rows, goes with the parts.
// CHECK-LABEL: func.func @gradient_of_a_scale
// CHECK: %[[M:.*]] = graph.reshape %m {shape = array<i64: 32, 256, 1>}
// CHECK: %[[C:.*]] = graph.sub %{{.*}}, %[[M]] : {{.*}} -> tensor<32x256x128xf32>
// CHECK: %[[W:.*]] = graph.reshape %w {shape = array<i64: 1, 1, 128>}
// CHECK: %[[P:.*]] = graph.mul %[[C]], %[[W]] : {{.*}} -> tensor<32x256x128xf32>
// CHECK: %[[S:.*]] = graph.reduce %[[P]] {kind = "sum", axes = array<i64: 1>, {{.*}} -> tensor<32x128xf32>
// CHECK: %[[T:.*]] = graph.reduce %[[S]] {kind = "sum", axes = array<i64: 0>, {{.*}} -> tensor<128xf32>
// CHECK: %[[N:.*]] = arith.constant dense<8.192000e+03>
// CHECK: graph.div %[[T]], %[[N]]
// CPU-LABEL: func.func @gradient_of_a_scale
// CPU: graph.reduce %{{.*}} {kind = "mean", axes = array<i64: 0, 1>
func.func @gradient_of_a_scale(%x: tensor<128x64x128xf32>, %m: tensor<128x64x1xf32>, %w: tensor<128xf32>) -> tensor<128xf32> {
  %0 = graph.sub %x, %m : (tensor<128x64x128xf32>, tensor<128x64x1xf32>) -> tensor<128x64x128xf32>
  %1 = graph.mul %0, %w : (tensor<128x64x128xf32>, tensor<128xf32>) -> tensor<128x64x128xf32>
  %y = graph.reduce %1 {kind = "mean", axes = array<i64: 0, 1>, keepdims = false} : (tensor<128x64x128xf32>) -> tensor<128xf32>
  func.return %y : tensor<128xf32>
}

// As many columns as these keep a GPU's memory busy.
// CHECK-LABEL: func.func @many_columns
// CHECK-NEXT: graph.reduce %x {kind = "sum", axes = array<i64: 0>
// MISSED: to join parts takes as long as they save
func.func @many_columns(%x: tensor<4096x4096xf32>) -> tensor<4096xf32> {
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<4096x4096xf32>) -> tensor<4096xf32>
  func.return %y : tensor<4096xf32>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-5: graph.reduce
// CHECK-NOT: graph.reduce
// MISSED: each vEU has a result of its own
// MISSED: its dimensions are apart
// MISSED: it is a mean of rows, which may be part of a normalisation
// MISSED: what parts give would be rounded
func.func @left_alone(%x: tensor<200x128x3xf32>, %h: tensor<65536xf16>) -> (tensor<200xf32>, tensor<200x3xf32>, tensor<128xf32>, tensor<f32>, tensor<f16>) {
  %a = graph.reduce %x {kind = "sum", axes = array<i64: 1, 2>, keepdims = false} : (tensor<200x128x3xf32>) -> tensor<200xf32>
  %b = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<200x128x3xf32>) -> tensor<200x3xf32>
  %c = graph.reduce %x {kind = "sum", axes = array<i64: 0, 2>, keepdims = false} : (tensor<200x128x3xf32>) -> tensor<128xf32>
  %d = graph.reduce %x {kind = "mean", axes = array<i64: 0, 1, 2>, keepdims = false} : (tensor<200x128x3xf32>) -> tensor<f32>
  %e = graph.reduce %h {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<65536xf16>) -> tensor<f16>
  func.return %a, %b, %c, %d, %e : tensor<200xf32>, tensor<200x3xf32>, tensor<128xf32>, tensor<f32>, tensor<f16>
}
