// RUN: irkit-opt %s -p sink-expansions,canonicalize | filecheck %s
// RUN: irkit-opt %s -p sink-expansions --remarks=missed 2>&1 | filecheck %s --check-prefix=MISS

#own = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d2)>
#place = affine_map<(d0, d1, d2) -> (d1, d2)>
#turned = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// What was split the same way is read as it was; what was not is joined; what is read by whole dimensions stays.
// CHECK-LABEL: func.func @joined
// CHECK:       %[[P:.*]] = linalg.generic {{.*}}"reduction"]
// CHECK:       %[[O:.*]] = tensor.collapse_shape %other
// CHECK:       %[[E:.*]], %[[F:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]{{.*}} ins(%[[P]], %[[O]], %flat, %bias :
// CHECK:       %[[A:.*]] = tensor.expand_shape %[[E]]
// CHECK:       %[[B:.*]] = tensor.expand_shape %[[F]]
// CHECK:       func.return %[[A]], %[[B]]
func.func @joined(%a: tensor<6x4xf32>, %b: tensor<4x5xf32>, %other: tensor<2x3x5xf32>, %flat: tensor<6x5xf32>, %bias: tensor<5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>) {
  %zero = arith.constant dense<0.0> : tensor<6x5xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<6x4xf32>, tensor<4x5xf32>) outs(%zero : tensor<6x5xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<6x5xf32>
  %split = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %flat3 = tensor.expand_shape %flat [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %e = tensor.empty() : tensor<2x3x5xf32>
  %u, %v = linalg.generic {indexing_maps = [#own, #own, #own, #row, #own, #own], iterator_types = ["parallel", "parallel", "parallel"]} ins(%split, %other, %flat3, %bias : tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<5xf32>) outs(%e, %e : tensor<2x3x5xf32>, tensor<2x3x5xf32>) {
  ^bb0(%1: f32, %2: f32, %3: f32, %4: f32, %5: f32, %6: f32):
    %7 = arith.mulf %1, %2 : f32
    %8 = arith.addf %7, %3 : f32
    %9 = arith.addf %8, %4 : f32
    linalg.yield %8, %9 : f32, f32
  } -> tensor<2x3x5xf32>, tensor<2x3x5xf32>
  func.return %u, %v : tensor<2x3x5xf32>, tensor<2x3x5xf32>
}

// MISS: an operand is read by a part of a split dimension
// CHECK-LABEL: func.func @places
// CHECK:       tensor.expand_shape
// CHECK-NEXT:  tensor.empty
// CHECK-NEXT:  linalg.generic
// CHECK:       func.return
func.func @places(%a: tensor<6x4xf32>, %b: tensor<4x5xf32>, %places: tensor<3x5xf32>) -> tensor<2x3x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x5xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<6x4xf32>, tensor<4x5xf32>) outs(%zero : tensor<6x5xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<6x5xf32>
  %split = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %e = tensor.empty() : tensor<2x3x5xf32>
  %u = linalg.generic {indexing_maps = [#own, #place, #own], iterator_types = ["parallel", "parallel", "parallel"]} ins(%split, %places : tensor<2x3x5xf32>, tensor<3x5xf32>) outs(%e : tensor<2x3x5xf32>) {
  ^bb0(%1: f32, %2: f32, %3: f32):
    %4 = arith.addf %1, %2 : f32
    linalg.yield %4 : f32
  } -> tensor<2x3x5xf32>
  func.return %u : tensor<2x3x5xf32>
}

// MISS: it reads the reshaped value, or writes, in another order
// CHECK-LABEL: func.func @turned
// CHECK:       tensor.expand_shape
// CHECK-NEXT:  tensor.empty
// CHECK-NEXT:  linalg.generic
// CHECK:       func.return
func.func @turned(%a: tensor<6x4xf32>, %b: tensor<4x5xf32>) -> tensor<3x2x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x5xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<6x4xf32>, tensor<4x5xf32>) outs(%zero : tensor<6x5xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<6x5xf32>
  %split = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %e = tensor.empty() : tensor<3x2x5xf32>
  %u = linalg.generic {indexing_maps = [#turned, #own], iterator_types = ["parallel", "parallel", "parallel"]} ins(%split : tensor<2x3x5xf32>) outs(%e : tensor<3x2x5xf32>) {
  ^bb0(%1: f32, %2: f32):
    %3 = math.exp %1 : f32
    linalg.yield %3 : f32
  } -> tensor<3x2x5xf32>
  func.return %u : tensor<3x2x5xf32>
}

// MISS: a dimension that is split is open
// CHECK-LABEL: func.func @batch
// CHECK:       tensor.expand_shape
// CHECK:       linalg.generic
func.func @batch(%a: tensor<?x4xf32>, %b: tensor<4x5xf32>, %n: index, %rows: index) -> tensor<?x3x5xf32> {
  %e0 = tensor.empty(%rows) : tensor<?x5xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<?x4xf32>, tensor<4x5xf32>) outs(%e0 : tensor<?x5xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x5xf32>
  %split = tensor.expand_shape %p [[0, 1], [2]] output_shape [%n, 3, 5] : tensor<?x5xf32> into tensor<?x3x5xf32>
  %e = tensor.empty(%n) : tensor<?x3x5xf32>
  %u = linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel", "parallel", "parallel"]} ins(%split : tensor<?x3x5xf32>) outs(%e : tensor<?x3x5xf32>) {
  ^bb0(%1: f32, %2: f32):
    %3 = math.exp %1 : f32
    linalg.yield %3 : f32
  } -> tensor<?x3x5xf32>
  func.return %u : tensor<?x3x5xf32>
}
