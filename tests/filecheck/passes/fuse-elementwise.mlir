// RUN: irkit-opt %s -p fuse-elementwise --check-semantics --split-input-file | filecheck %s

// A chain becomes one loop nest, a broadcast becomes a map.
func.func @main(%x: tensor<?x4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<?x4xf32>
  // The size of what is fused is no reason to keep it.
  %m = tensor.dim %0, %c0 : tensor<?x4xf32>
  %f = tensor.empty(%m) : tensor<?x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %0 : tensor<?x4xf32>, tensor<?x4xf32>) outs(%f : tensor<?x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?x4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<?x4xf32>) outs(%f : tensor<?x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x4xf32>, %b: tensor<4xf32>)
// CHECK-NEXT:    [[c0:%.*]] = arith.constant 0 : index
// CHECK-NEXT:    [[n:%.*]] = tensor.dim %x, [[c0]]
// CHECK-NEXT:    [[e:%.*]] = tensor.empty([[n]]) : tensor<?x4xf32>
// CHECK-NEXT:    [[y:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<?x4xf32>, tensor<4xf32>) outs([[e]] : tensor<?x4xf32>) {
// CHECK-NEXT:    ^bb0([[p:%.*]]: f32, [[q:%.*]]: f32, [[o:%.*]]: f32):
// CHECK-NEXT:      [[s:%.*]] = arith.addf [[p]], [[q]] : f32
// CHECK-NEXT:      [[t:%.*]] = math.exp [[s]] : f32
// CHECK-NEXT:      linalg.yield [[t]] : f32
// CHECK-NEXT:    } -> tensor<?x4xf32>
// CHECK-NEXT:    func.return [[y]]

// -----

// A product is left alone by what comes before and what comes after.
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<2x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<2x4xf32>
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%init : tensor<2x3xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %acc, %s : f32
    linalg.yield %t : f32
  } -> tensor<2x3xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<2x3xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.tanh %p : f32
    linalg.yield %s : f32
  } -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>)
// CHECK:         linalg.generic
// CHECK:         math.exp
// CHECK:         linalg.generic
// CHECK:         arith.mulf
// CHECK:         linalg.generic
// CHECK:         math.tanh

// -----

// A constant of equal elements goes into the body; reshapes there and back cancel.
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %c = arith.constant dense<2.0> : tensor<6xf32>
  %a = tensor.expand_shape %x [[0 : i64, 1 : i64]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  %b = tensor.collapse_shape %a [[0 : i64, 1 : i64]] : tensor<2x3xf32> into tensor<6xf32>
  %e = tensor.empty() : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%b, %c : tensor<6xf32>, tensor<6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<6xf32>)
// CHECK-NEXT:    [[e:%.*]] = tensor.empty() : tensor<6xf32>
// CHECK-NEXT:    %y = linalg.generic {{.*}} ins(%x : tensor<6xf32>)
// CHECK-NEXT:    ^bb0([[p:%.*]]: f32, [[o:%.*]]: f32):
// CHECK-NEXT:      [[c:%.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NEXT:      [[s:%.*]] = arith.mulf [[p]], [[c]] : f32
