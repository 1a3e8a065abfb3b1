// Tensor expressions become generics: a product a contraction, what a condition keeps in bounds a padded tensor,
// indices that are computed a gather.
// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics --split-input-file | filecheck %s

// CHECK:      func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>)
// CHECK:      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK:      arith.mulf
// CHECK-NEXT: arith.addf
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %y = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)"} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  func.return %y : tensor<4x16xf32>
}

// -----

// CHECK:      tensor.pad %x low[1] high[1]
// CHECK:      linalg.index 0
// CHECK:      arith.select
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %y = graph.expression %x {text = "O(i) = i >= 1 && i < 5 ? X(i - 1) : 7 where i in 0:6"} : (tensor<4xf32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// -----

// A window of its own says how long the loop over k is.
// CHECK:      tensor.empty() : tensor<3xf32>
// CHECK:      arith.maximumf
func.func @main(%x: tensor<9xf32>) -> tensor<4xf32> {
  %y = graph.expression %x {text = "O(i) max=! X(2 * i + k) where k in 0:3"} : (tensor<9xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK:      te.gather %x, %i {axis = 0 : i64}
func.func @main(%x: tensor<9x2xf32>, %i: tensor<4xi64>) -> tensor<4x2xf32> {
  %y = graph.expression %x, %i {text = "O(i, j) = X(I(i), j)"} : (tensor<9x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}

// -----

// The extents of windows stand in the result: a product of them is a contraction.
// CHECK:      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (((d2 * 2) + d1))>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%d, %x : tensor<2x4xf32>, tensor<9xf32>)
// CHECK:      arith.mulf
// CHECK-NEXT: arith.addf
func.func @main(%d: tensor<2x4xf32>, %x: tensor<9xf32>) -> tensor<2x3xf32> {
  %y = graph.expression %d, %x {text = "W(m, t) +=! D(m, h) * X(2 * h + t) where t in 0:3"} : (tensor<2x4xf32>, tensor<9xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
