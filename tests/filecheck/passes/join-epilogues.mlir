// RUN: irkit-opt %s -p 'join-epilogues{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p join-epilogues | filecheck %s --check-prefix=CPU
// RUN: irkit-opt %s -p 'join-epilogues{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

#all = affine_map<(d0, d1) -> (d0, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// What is made of a product, and of that, is one op with two results; what another product gives comes later.
// CHECK-LABEL: func.func @step
// CHECK: %[[M:.*]] = linalg.generic {{.*}} "reduction"]} ins(%x, %w
// CHECK: %[[Y:.*]], %[[Z:.*]] = linalg.generic {{.*}} ins(%[[M]], %s, %t :
// CHECK: math.tanh
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.subf
// CHECK-NEXT: linalg.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK: %[[N:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[Z]], %w
// CHECK: linalg.generic {{.*}} ins(%[[N]], %[[Y]] :
// CPU-LABEL: func.func @step
// CPU-COUNT-6: linalg.generic
// MISSED: remark: [missed] join-epilogues/JoinEpilogues: 'linalg.generic': one op or none is behind it
func.func @step(%x: tensor<6x6xf32>, %w: tensor<6x6xf32>, %s: tensor<6x6xf32>, %t: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x6xf32>, tensor<6x6xf32>) outs(%z0 : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %i = arith.mulf %p, %q : f32
    %r = arith.addf %o, %i : f32
    linalg.yield %r : f32
  } -> tensor<6x6xf32>
  %f = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%m, %s : tensor<6x6xf32>, tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %i = math.tanh %p : f32
    %r = arith.mulf %i, %q : f32
    linalg.yield %r : f32
  } -> tensor<6x6xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%f, %t : tensor<6x6xf32>, tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<6x6xf32>
  %z = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%f, %t : tensor<6x6xf32>, tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.subf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<6x6xf32>
  %n = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%z, %w : tensor<6x6xf32>, tensor<6x6xf32>) outs(%z0 : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %i = arith.mulf %p, %q : f32
    %r = arith.addf %o, %i : f32
    linalg.yield %r : f32
  } -> tensor<6x6xf32>
  %g = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%n, %y : tensor<6x6xf32>, tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<6x6xf32>
  return %g : tensor<6x6xf32>
}
