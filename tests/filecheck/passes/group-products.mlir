// RUN: irkit-opt %s -p group-products | filecheck %s
// RUN: irkit-opt %s -p group-products --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// Two products of the state, one of weights that lie the other way round and with a bias. What reads the cell
// state of the first op is one with it: two results, and the sums of a unit side by side.
// CHECK-LABEL: func.func @cell
// CHECK: %[[W:.*]] = arith.constant dense_resource<{{.*}}> : tensor<3x2x4xf32>
// CHECK: %[[B:.*]] = arith.constant dense<{{.*}}> : tensor<3x2xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[B]]
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>]{{.*}} ins(%h, %[[W]] : tensor<1x4xf32>, tensor<3x2x4xf32>) outs(%[[S]] : tensor<1x3x2xf32>)
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1, 0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1, 1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]{{.*}} ins(%[[P]], %c, %[[P]] :
// CHECK-NOT: linalg.generic
func.func @cell(%h: tensor<1x4xf32>, %c: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  %w0 = arith.constant dense<0.5> : tensor<4x3xf32>
  %w1 = arith.constant dense<0.25> : tensor<3x4xf32>
  %b = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3xf32>) -> tensor<1x3xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w0 : tensor<1x4xf32>, tensor<4x3xf32>) outs(%0 : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<3xf32>) outs(%e : tensor<1x3xf32>) {
  ^bb0(%x: f32, %a: f32):
    linalg.yield %x : f32
  } -> tensor<1x3xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w1 : tensor<1x4xf32>, tensor<3x4xf32>) outs(%2 : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%1, %c : tensor<1x3xf32>, tensor<1x3xf32>) outs(%e : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%4, %3 : tensor<1x3xf32>, tensor<1x3xf32>) outs(%e : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  func.return %4, %5 : tensor<1x3xf32>, tensor<1x3xf32>
}

// The columns of one product, read in two slices.
// CHECK-LABEL: func.func @split
// CHECK: linalg.generic {{.*}} ins(%h, %{{.*}} : tensor<2x4xf32>, tensor<3x2x4xf32>) outs(%{{.*}} : tensor<2x3x2xf32>)
// CHECK-NOT: tensor.extract_slice
func.func @split(%h: tensor<2x4xf32>) -> tensor<2x3xf32> {
  %w = arith.constant dense<0.5> : tensor<4x6xf32>
  %zero = arith.constant 0.0 : f32
  %e6 = tensor.empty() : tensor<2x6xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e6 : tensor<2x6xf32>) -> tensor<2x6xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w : tensor<2x4xf32>, tensor<4x6xf32>) outs(%0 : tensor<2x6xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x6xf32>
  %2 = tensor.extract_slice %1[0, 0] [2, 3] [1, 1] : tensor<2x6xf32> to tensor<2x3xf32>
  %3 = tensor.extract_slice %1[0, 3] [2, 3] [1, 1] : tensor<2x6xf32> to tensor<2x3xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%2, %3 : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<2x3xf32>
  func.return %4 : tensor<2x3xf32>
}

// Left alone: a product whose reader is the next product's source, so that the two readers wait for different
// ones; many rows; a product that is returned.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: affine_map<(d0, d1, d2, d3)
// MISSED-DAG: what reads it does not all wait for as many products
// MISSED-DAG: it has more rows than 8, or is open in them
// MISSED-DAG: something else than elementwise ops reads its columns
func.func @apart(%h: tensor<1x3xf32>, %many: tensor<9x3xf32>) -> (tensor<1x3xf32>, tensor<9x3xf32>, tensor<1x3xf32>) {
  %w = arith.constant dense<0.5> : tensor<3x3xf32>
  %v = arith.constant dense<0.25> : tensor<3x6xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3xf32>
  %e6 = tensor.empty() : tensor<1x6xf32>
  %e9 = tensor.empty() : tensor<9x3xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3xf32>) -> tensor<1x3xf32>
  %00 = linalg.fill ins(%zero : f32) outs(%e6 : tensor<1x6xf32>) -> tensor<1x6xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %v : tensor<1x3xf32>, tensor<3x6xf32>) outs(%00 : tensor<1x6xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x6xf32>
  %z = tensor.extract_slice %1[0, 0] [1, 3] [1, 1] : tensor<1x6xf32> to tensor<1x3xf32>
  %r = tensor.extract_slice %1[0, 3] [1, 3] [1, 1] : tensor<1x6xf32> to tensor<1x3xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%r, %h : tensor<1x3xf32>, tensor<1x3xf32>) outs(%e : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%2, %w : tensor<1x3xf32>, tensor<3x3xf32>) outs(%0 : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%3, %z : tensor<1x3xf32>, tensor<1x3xf32>) outs(%e : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  %f9 = linalg.fill ins(%zero : f32) outs(%e9 : tensor<9x3xf32>) -> tensor<9x3xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%many, %w : tensor<9x3xf32>, tensor<3x3xf32>) outs(%f9 : tensor<9x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<9x3xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w : tensor<1x3xf32>, tensor<3x3xf32>) outs(%0 : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32, %a: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x3xf32>
  func.return %4, %5, %6 : tensor<1x3xf32>, tensor<9x3xf32>, tensor<1x3xf32>
}
