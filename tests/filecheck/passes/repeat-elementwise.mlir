// RUN: irkit-opt %s -p 'repeat-elementwise{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p repeat-elementwise | filecheck %s --check-prefix=CPU
// RUN: irkit-opt %s -p 'repeat-elementwise{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// Of what a product gives, and what both readers make of it, the product alone is stored.
// CHECK-LABEL: func.func @both
// CHECK: %[[M:.*]] = linalg.generic {{.*}} "reduction"]} ins(%x, %w
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[M]] : tensor<4x6xf32>)
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT: math.erf
// CHECK-NEXT: arith.mulf
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[M]], %t : tensor<4x6xf32>, tensor<4x6xf32>)
// CHECK: math.erf
// CHECK: return %[[Y]], %[[Z]]
// CPU-LABEL: func.func @both
// CPU-COUNT-1: math.erf
// CPU-NOT: math.erf
func.func @both(%x: tensor<4x5xf32>, %w: tensor<5x6xf32>, %t: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x5xf32>, tensor<5x6xf32>) outs(%z0 : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    %r = arith.addf %o, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %f = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.erf %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%f, %m : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %z = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%f, %t : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %y, %z : tensor<4x6xf32>, tensor<4x6xf32>
}

// What nothing else needs is no cheaper to store than what is made of it; what is returned is stored.
// CHECK-LABEL: func.func @stored
// CHECK-COUNT-2: math.exp
// CHECK-NOT: math.exp
// MISSED: remark: [missed] repeat-elementwise/RepeatElementwise: 'linalg.generic': something reads it from memory
func.func @stored(%x: tensor<4x6xf32>, %t: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %g = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%f, %t : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %z = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%g, %t : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %f, %y, %z : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}
