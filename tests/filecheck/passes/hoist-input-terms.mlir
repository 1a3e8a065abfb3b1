// RUN: irkit-opt %s -p 'hoist-input-terms{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p 'hoist-input-terms{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'hoist-input-terms{device="cpu1"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=CACHED

// Two steps, the second one first, as of a layer in reverse: one product of both, by weights as a matrix, with
// the bias in each row.
// CHECK-LABEL: func.func @steps
// CHECK: %[[X:.*]] = tensor.collapse_shape %x {{\[}}{{\[}}0 : i64, 1 : i64], [2 : i64]] : tensor<2x3x4xf32> into tensor<6x4xf32>
// CHECK: %[[W:.*]] = arith.constant dense<5.000000e-01> : tensor<4x4xf32>
// CHECK: %[[B:.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<4xf32>) outs(%{{.*}} : tensor<6x4xf32>)
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[W]] : tensor<6x4xf32>, tensor<4x4xf32>) outs(%[[S]] : tensor<6x4xf32>) attrs =  {irkit.precision = "ieee"}
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[P]] {{.*}} : tensor<6x4xf32> into tensor<2x3x4x1xf32>
// CHECK: %[[Y1:.*]] = tensor.extract_slice %[[Y]][1, 0, 0, 0] [1, 3, 4, 1] [1, 1, 1, 1]
// CHECK: %[[G1:.*]] = tensor.collapse_shape %[[Y1]] {{.*}} : tensor<1x3x4x1xf32> into tensor<3x4x1xf32>
// CHECK: linalg.generic {{.*}} ins(%h, %{{.*}} : tensor<3x4xf32>, tensor<4x1x4xf32>) outs(%[[G1]] : tensor<3x4x1xf32>)
// CHECK: %[[Y0:.*]] = tensor.extract_slice %[[Y]][0, 0, 0, 0] [1, 3, 4, 1] [1, 1, 1, 1]
// CACHED: its weights are so few that they stay in the cache from step to step
func.func @steps(%x: tensor<2x3x4xf32>, %h: tensor<3x4xf32>) -> (tensor<3x4x1xf32>, tensor<3x4x1xf32>) {
  %w = arith.constant dense<0.5> : tensor<4x1x4xf32>
  %r = arith.constant dense<0.25> : tensor<4x1x4xf32>
  %b = arith.constant dense<1.0> : tensor<4x1xf32>
  %e = tensor.empty() : tensor<3x4x1xf32>
  %start = linalg.generic {indexing_maps = [affine_map<(m, u, g) -> (u, g)>, affine_map<(m, u, g) -> (m, u, g)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b : tensor<4x1xf32>) outs(%e : tensor<3x4x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<3x4x1xf32>
  %x1 = tensor.extract_slice %x[1, 0, 0] [1, 3, 4] [1, 1, 1] : tensor<2x3x4xf32> to tensor<1x3x4xf32>
  %s1 = tensor.collapse_shape %x1 [[0 : i64, 1 : i64], [2 : i64]] : tensor<1x3x4xf32> into tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, u, g, k) -> (m, k)>, affine_map<(m, u, g, k) -> (u, g, k)>, affine_map<(m, u, g, k) -> (m, u, g)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%s1, %w : tensor<3x4xf32>, tensor<4x1x4xf32>) outs(%start : tensor<3x4x1xf32>) attrs = {irkit.precision = "ieee"} {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4x1xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, u, g, k) -> (m, k)>, affine_map<(m, u, g, k) -> (u, g, k)>, affine_map<(m, u, g, k) -> (m, u, g)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%h, %r : tensor<3x4xf32>, tensor<4x1x4xf32>) outs(%0 : tensor<3x4x1xf32>) attrs = {irkit.precision = "ieee"} {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4x1xf32>
  %h1 = tensor.collapse_shape %1 [[0 : i64], [1 : i64, 2 : i64]] : tensor<3x4x1xf32> into tensor<3x4xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [1, 3, 4] [1, 1, 1] : tensor<2x3x4xf32> to tensor<1x3x4xf32>
  %s0 = tensor.collapse_shape %x0 [[0 : i64, 1 : i64], [2 : i64]] : tensor<1x3x4xf32> into tensor<3x4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, u, g, k) -> (m, k)>, affine_map<(m, u, g, k) -> (u, g, k)>, affine_map<(m, u, g, k) -> (m, u, g)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%s0, %w : tensor<3x4xf32>, tensor<4x1x4xf32>) outs(%start : tensor<3x4x1xf32>) attrs = {irkit.precision = "ieee"} {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4x1xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(m, u, g, k) -> (m, k)>, affine_map<(m, u, g, k) -> (u, g, k)>, affine_map<(m, u, g, k) -> (m, u, g)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%h1, %r : tensor<3x4xf32>, tensor<4x1x4xf32>) outs(%2 : tensor<3x4x1xf32>) attrs = {irkit.precision = "ieee"} {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4x1xf32>
  func.return %1, %3 : tensor<3x4x1xf32>, tensor<3x4x1xf32>
}

// An open batch before the steps: no rows are joined.
// CHECK-LABEL: func.func @open_batch
// CHECK: linalg.generic {{.*}} ins(%x, %{{.*}} : tensor<?x2x4xf32>, tensor<3x4xf32>) outs(%{{.*}} : tensor<?x2x3xf32>)
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0] [%{{.*}}, 1, 3] [1, 1, 1] : tensor<?x2x3xf32> to tensor<?x1x3xf32>
// CHECK: tensor.extract_slice %{{.*}}[0, 1, 0] [%{{.*}}, 1, 3] [1, 1, 1] : tensor<?x2x3xf32> to tensor<?x1x3xf32>
func.func @open_batch(%x: tensor<?x2x4xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
  %w = arith.constant dense<0.5> : tensor<3x4xf32>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x2x4xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [%n, 1, 4] [1, 1, 1] : tensor<?x2x4xf32> to tensor<?x1x4xf32>
  %s0 = tensor.collapse_shape %x0 [[0 : i64, 1 : i64], [2 : i64]] : tensor<?x1x4xf32> into tensor<?x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, u, k) -> (m, k)>, affine_map<(m, u, k) -> (u, k)>, affine_map<(m, u, k) -> (m, u)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s0, %w : tensor<?x4xf32>, tensor<3x4xf32>) outs(%start : tensor<?x3xf32>) {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x3xf32>
  %x1 = tensor.extract_slice %x[0, 1, 0] [%n, 1, 4] [1, 1, 1] : tensor<?x2x4xf32> to tensor<?x1x4xf32>
  %s1 = tensor.collapse_shape %x1 [[0 : i64, 1 : i64], [2 : i64]] : tensor<?x1x4xf32> into tensor<?x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, u, k) -> (m, k)>, affine_map<(m, u, k) -> (u, k)>, affine_map<(m, u, k) -> (m, u)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s1, %w : tensor<?x4xf32>, tensor<3x4xf32>) outs(%start : tensor<?x3xf32>) {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x3xf32>
  func.return %0, %1 : tensor<?x3xf32>, tensor<?x3xf32>
}

// Left alone: weights that are no constant, a start that is not the same in all rows, a part of each row, one
// step; and, of what an earlier product makes step by step, all but on one vEU, which puts them end to end.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: tensor.concat
// CHECK-NOT: tensor<6x
// CHECK: func.return
// MISSED-DAG: its weights are no constant
// MISSED-DAG: it starts from what is not the same constant in all rows
// MISSED-DAG: no other step has whole rows of the same tensor
// CACHED-LABEL: func.func @apart
// CACHED: tensor.concat dim(0) %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
func.func @apart(%x: tensor<2x3x4xf32>, %v: tensor<4x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %w = arith.constant dense<0.5> : tensor<4x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [1, 3, 4] [1, 1, 1] : tensor<2x3x4xf32> to tensor<1x3x4xf32>
  %s0 = tensor.collapse_shape %x0 [[0 : i64, 1 : i64], [2 : i64]] : tensor<1x3x4xf32> into tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, u, k) -> (m, k)>, affine_map<(m, u, k) -> (u, k)>, affine_map<(m, u, k) -> (m, u)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s0, %v : tensor<3x4xf32>, tensor<4x4xf32>) outs(%start : tensor<3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, u, k) -> (m, k)>, affine_map<(m, u, k) -> (u, k)>, affine_map<(m, u, k) -> (m, u)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s0, %w : tensor<3x4xf32>, tensor<4x4xf32>) outs(%0 : tensor<3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, u, k) -> (m, k)>, affine_map<(m, u, k) -> (u, k)>, affine_map<(m, u, k) -> (m, u)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %w : tensor<3x4xf32>, tensor<4x4xf32>) outs(%start : tensor<3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(m, u, k) -> (m, k)>, affine_map<(m, u, k) -> (u, k)>, affine_map<(m, u, k) -> (m, u)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1, %w : tensor<3x4xf32>, tensor<4x4xf32>) outs(%start : tensor<3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %a: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  func.return %1, %2, %3 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}
