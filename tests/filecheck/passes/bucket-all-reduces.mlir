// RUN: irkit-opt %s -p 'bucket-all-reduces{bytes=40}' | filecheck %s
// RUN: irkit-opt %s -p 'bucket-all-reduces{bytes=40}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// Buckets are filled as values are made, and reduced before what comes behind them.
// CHECK-LABEL: func.func @gradients
// CHECK-NEXT: %a = graph.neg %x
// CHECK-NEXT: %b = graph.exp %y
// CHECK-NEXT: %[[F:.*]] = graph.reshape %b {shape = array<i64: 4>}
// CHECK-NEXT: %[[J:.*]] = graph.concat(%a, %[[F]]) {axis = 0 : i64} : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
// CHECK-NEXT: %[[S:.*]] = dist.all_reduce %[[J]] {kind = "sum"} : (tensor<12xf32>) -> tensor<12xf32>
// CHECK-NEXT: %[[RA:.*]] = graph.slice %[[S]] {offsets = array<i64: 0>, sizes = array<i64: 8>
// CHECK-NEXT: %[[PB:.*]] = graph.slice %[[S]] {offsets = array<i64: 8>, sizes = array<i64: 4>
// CHECK-NEXT: %[[RB:.*]] = graph.reshape %[[PB]] {shape = array<i64: 2, 2>}
// CHECK-NEXT: %c = graph.tanh %x
// CHECK-NEXT: %n = graph.reduce
// CHECK-NEXT: %[[RC:.*]] = dist.all_reduce %c {kind = "sum"}
// CHECK-NEXT: %[[RN:.*]] = dist.all_reduce %n {kind = "max"}
// CHECK-NEXT: func.return %[[RC]], %[[RB]], %[[RA]], %[[RN]]
func.func @gradients(%x: tensor<8xf32>, %y: tensor<2x2xf32>) -> (tensor<8xf32>, tensor<2x2xf32>, tensor<8xf32>, tensor<f32>) {
  %a = graph.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = graph.exp %y : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = graph.tanh %x : (tensor<8xf32>) -> tensor<8xf32>
  %n = graph.reduce %c {kind = "max", axes = array<i64: 0>, keepdims = false} : (tensor<8xf32>) -> tensor<f32>
  %rc = dist.all_reduce %c {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %rb = dist.all_reduce %b {kind = "sum"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %ra = dist.all_reduce %a {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %rn = dist.all_reduce %n {kind = "max"} : (tensor<f32>) -> tensor<f32>
  func.return %rc, %rb, %ra, %rn : tensor<8xf32>, tensor<2x2xf32>, tensor<8xf32>, tensor<f32>
}

// Two that hang on each other cannot be one.
// CHECK-LABEL: func.func @behind
// CHECK-NEXT: dist.all_reduce %x
// CHECK-NEXT: graph.neg
// CHECK-NEXT: dist.all_reduce
// CHECK-NEXT: func.return
// MISSED: it hangs on another reduction
func.func @behind(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = dist.all_reduce %x {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %b = graph.neg %a : (tensor<8xf32>) -> tensor<8xf32>
  %c = dist.all_reduce %b {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  func.return %c : tensor<8xf32>
}
