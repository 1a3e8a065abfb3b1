// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics --split-input-file | filecheck %s

// The sum starts from the bias; transposed weights are only read in another order.
func.func @main(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}
    : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x8xf32>
// CHECK:         [[init:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<16xf32>)
// CHECK:         %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x8xf32>, tensor<16x8xf32>) outs([[init]] : tensor<?x16xf32>) {
// CHECK-NEXT:    ^bb0([[p:%.*]]: f32, [[q:%.*]]: f32, [[acc:%.*]]: f32):
// CHECK-NEXT:      [[m:%.*]] = arith.mulf [[p]], [[q]] : f32
// CHECK-NEXT:      [[s:%.*]] = arith.addf [[acc]], [[m]] : f32
// CHECK-NEXT:      linalg.yield [[s]] : f32
// CHECK-NEXT:    } -> tensor<?x16xf32>
// CHECK-NEXT:    func.return %y

// -----

// Constant weights take alpha in, a constant bias takes beta in.
func.func @main(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = false, alpha = 2.0 : f64, beta = 3.0 : f64}
    : (tensor<1x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<1x2xf32>)
// CHECK-DAG:     arith.constant dense<{{\[\[}}2.000000e+00, 4.000000e+00], [6.000000e+00, 8.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG:     arith.constant dense<[3.000000e+00, 6.000000e+00]> : tensor<2xf32>
// CHECK-NOT:     arith.constant dense

// -----

// Leading dimensions of one broadcast.
func.func @main(%a: tensor<2x1x3x4xf32>, %b: tensor<6x4x5xf32>) -> tensor<2x6x3x5xf32> {
  %y = graph.matmul %a, %b : (tensor<2x1x3x4xf32>, tensor<6x4x5xf32>) -> tensor<2x6x3x5xf32>
  return %y : tensor<2x6x3x5xf32>
}
// CHECK-LABEL: func.func @main(%a: tensor<2x1x3x4xf32>
// CHECK:         [[zero:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         linalg.fill ins([[zero]] : f32)
// CHECK:         %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, 0, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>]
