// RUN: irkit-opt %s --split-input-file -p convert-graph-to-tensor --check-semantics | filecheck %s

// Weights lie unit by unit, and both steps read the same.
func.func @main(%x: tensor<1x1xf32>, %h: tensor<1x2xf32>, %c: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %w = arith.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]> : tensor<8x1xf32>
  %r = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]> : tensor<8x2xf32>
  %b = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %b
    : (tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<8x1xf32>, tensor<8x2xf32>, tensor<8xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  %h2, %c2 = graph.lstm_cell %x, %h1, %c1, %w, %r, %b
    : (tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<8x1xf32>, tensor<8x2xf32>, tensor<8xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  return %h2 : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[w:%.*]] = arith.constant dense<{{\[\[\[}}1.000000e+00], [3.000000e+00], [5.000000e+00], [7.000000e+00]], {{\[\[}}2.000000e+00], [4.000000e+00], [6.000000e+00], [8.000000e+00]]]> : tensor<2x4x1xf32>
// CHECK-NEXT:    [[r:%.*]] = arith.constant {{.*}} : tensor<2x4x2xf32>
// CHECK-NEXT:    [[b:%.*]] = arith.constant {{.*}} : tensor<2x4xf32>
// CHECK:         [[s0:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], {{.*}} ins([[b]] : tensor<2x4xf32>)
// CHECK:         [[s1:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, [[w]] : tensor<1x1xf32>, tensor<2x4x1xf32>) outs([[s0]] : tensor<1x2x4xf32>)
// CHECK:         [[s2:%.*]] = linalg.generic {{.*}} ins(%h, [[r]] : tensor<1x2xf32>, tensor<2x4x2xf32>) outs([[s1]] : tensor<1x2x4xf32>)
// CHECK:         %h1, %c1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1, 0)>, affine_map<(d0, d1) -> (d0, d1, 1)>, affine_map<(d0, d1) -> (d0, d1, 2)>, affine_map<(d0, d1) -> (d0, d1, 3)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins([[s2]], [[s2]], [[s2]], [[s2]], %c
// CHECK-NOT:     arith.constant dense
// CHECK:         ins(%h1, [[r]] : tensor<1x2xf32>, tensor<2x4x2xf32>)
// CHECK-NOT:     arith.constant dense

// -----

// The products of the input wait for no state; the state's three gates are one contraction.
func.func @main(%x: tensor<1x5xf32>, %h: tensor<1x2xf32>, %w: tensor<6x5xf32>, %r: tensor<6x2xf32>, %b: tensor<8xf32>) -> tensor<1x2xf32> {
  %y = graph.gru_cell %x, %h, %w, %r, %b {linear_before_reset = true}
    : (tensor<1x5xf32>, tensor<1x2xf32>, tensor<6x5xf32>, tensor<6x2xf32>, tensor<8xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x5xf32>, %h: tensor<1x2xf32>
// CHECK:         [[x:%.*]] = linalg.generic {{.*}} ins(%x, %w : tensor<1x5xf32>, tensor<6x5xf32>)
// CHECK:         [[three:%.*]] = tensor.expand_shape [[x]] {{.*}} into tensor<1x3x2xf32>
// CHECK:         [[h:%.*]] = linalg.generic {{.*}} ins(%h, {{%.*}} : tensor<1x2xf32>, tensor<2x3x2xf32>)
// CHECK:         %y = linalg.generic {{.*}} ins([[h]], [[h]], [[h]], [[three]], [[three]], [[three]],

// -----

// Two chains of two contractions: the second reads the state times the reset gate.
func.func @main(%x: tensor<1x5xf32>, %h: tensor<1x2xf32>, %w: tensor<6x5xf32>, %r: tensor<6x2xf32>, %b: tensor<8xf32>) -> tensor<1x2xf32> {
  %y = graph.gru_cell %x, %h, %w, %r, %b {linear_before_reset = false}
    : (tensor<1x5xf32>, tensor<1x2xf32>, tensor<6x5xf32>, tensor<6x2xf32>, tensor<8xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x5xf32>, %h: tensor<1x2xf32>
// CHECK:         ins(%x, {{%.*}} : tensor<1x5xf32>, tensor<2x2x5xf32>)
// CHECK:         ins(%h, {{%.*}} : tensor<1x2xf32>, tensor<2x2x2xf32>)
// CHECK:         [[z:%.*]], [[kept:%.*]] = linalg.generic
// CHECK:         ins(%x, {{%.*}} : tensor<1x5xf32>, tensor<2x1x5xf32>)
// CHECK:         ins([[kept]], {{%.*}} : tensor<1x2xf32>, tensor<2x1x2xf32>)
// CHECK:         %y = linalg.generic {{.*}} ins({{%.*}}, [[z]], %h,
