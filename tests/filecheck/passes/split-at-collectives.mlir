// RUN: irkit-opt %s -p split-at-collectives | filecheck %s

// The second part does not wait for the first reduction; the last one alone has the state.
// CHECK-LABEL: func.func @main_part0
// CHECK-SAME: (%w: tensor<8xf32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK: graph.mul
// CHECK: graph.exp
// CHECK-LABEL: func.func @main_part1
// CHECK: graph.tanh
// CHECK-LABEL: func.func @main_part2
// CHECK-SAME: irkit.state = array<i64: 0, 0, 1, 1>
// CHECK: arith.constant dense<5.000000e-01>
// CHECK: graph.reshape
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[Y:.*]], %[[G:.*]] = func.call @main_part0(%w, %x)
// CHECK-NEXT: %[[A:.*]] = dist.all_reduce %[[G]]
// CHECK-NEXT: %[[H:.*]] = func.call @main_part1(%[[Y]])
// CHECK-NEXT: %[[B:.*]] = dist.all_reduce %[[H]]
// CHECK-NEXT: %[[W:.*]], %[[V:.*]] = func.call @main_part2(%w, %v, %[[A]], %[[B]])
// CHECK-NEXT: func.return %[[Y]], %[[W]], %[[V]]
func.func @main(%w: tensor<8xf32>, %v: tensor<8xf32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {irkit.state = array<i64: 0, 1, 1, 2>} {
  %half = arith.constant dense<0.5> : tensor<f32>
  %y = graph.mul %w, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %g = graph.exp %y : (tensor<8xf32>) -> tensor<8xf32>
  %a = dist.all_reduce %g {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %h = graph.tanh %y : (tensor<8xf32>) -> tensor<8xf32>
  %b = dist.all_reduce %h {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %d = graph.mul %a, %half : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %w2 = graph.sub %w, %d : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %r = graph.reshape %b {shape = array<i64: 8>} : (tensor<8xf32>) -> tensor<8xf32>
  %v2 = graph.sub %v, %r : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %y, %w2, %v2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Nothing between ranks, nothing to split.
// CHECK-LABEL: func.func @alone
// CHECK-NEXT: graph.neg
func.func @alone(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = graph.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
