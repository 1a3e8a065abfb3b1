// RUN: irkit-opt %s -p join-siblings | filecheck %s
// RUN: irkit-opt %s -p join-siblings --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

#id = affine_map<(d0) -> (d0)>
#two = affine_map<(d0, d1) -> (d0, d1)>

// A producer that two read, and both: what only they need is no result.
// CHECK-LABEL: func.func @family
// CHECK: %{{.*}}, %{{.*}} = linalg.generic {{.*}} ins(%x, %y : tensor<8xf32>, tensor<8xf32>)
// CHECK: math.exp
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: linalg.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK-NOT: linalg.generic
func.func @family(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%0, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%0, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  func.return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// Two slices of one array, and what both give.
// CHECK-LABEL: func.func @gates
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: math.absf
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: func.return
func.func @gates(%x: tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %s = tensor.extract_slice %x[0] [8] [1] : tensor<16xf32> to tensor<8xf32>
  %t = tensor.extract_slice %x[8] [8] [1] : tensor<16xf32> to tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %a = math.exp %p : f32
    linalg.yield %a : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%t : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %a = math.absf %p : f32
    linalg.yield %a : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%0, %1 : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %a = arith.addf %p, %q : f32
    linalg.yield %a : f32
  } -> tensor<8xf32>
  func.return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// The third waits for a sum of the first: one of the two would wait for itself.
// CHECK-LABEL: func.func @waits
// CHECK-COUNT-3: linalg.generic
// MISSED-DAG: 'linalg.generic': what reads it does not all wait for as many products
func.func @waits(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<f32>) -> tensor<f32>
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%0 : tensor<8xf32>) outs(%z : tensor<f32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %2 = linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>, #id], iterator_types = ["parallel"]} ins(%0, %1 : tensor<8xf32>, tensor<f32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.divf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%2 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.absf %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  func.return %0, %1, %3 : tensor<8xf32>, tensor<f32>, tensor<8xf32>
}

// Nothing in common, another shape, an insertion in place.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-3: linalg.generic
// MISSED-DAG: 'linalg.generic': they read nothing in common
// MISSED-DAG: 'linalg.generic': it is computed where it is inserted
func.func @apart(%x: tensor<8xf32>, %y: tensor<8xf32>, %a: tensor<10xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<10xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%y : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%y : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %3 = tensor.insert_slice %2 into %a[1] [8] [1] : tensor<8xf32> into tensor<10xf32>
  func.return %0, %1, %3 : tensor<8xf32>, tensor<8xf32>, tensor<10xf32>
}

// Two families, each of which could be one: joined, both would wait for one another.
// CHECK-LABEL: func.func @crossed
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: func.return
// MISSED-DAG: 'linalg.generic': one waits for what is computed from another
func.func @crossed(%x: tensor<8xf32>, %z: tensor<8x1xf32>) -> (tensor<8xf32>, tensor<8x1xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %f = tensor.empty() : tensor<8x1xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %t = tensor.expand_shape %a [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %b = linalg.generic {indexing_maps = [#two, #two, #two], iterator_types = ["parallel", "parallel"]} ins(%t, %z : tensor<8x1xf32>, tensor<8x1xf32>) outs(%f : tensor<8x1xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  %c = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%z : tensor<8x1xf32>) outs(%f : tensor<8x1xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  %u = tensor.collapse_shape %c [[0, 1]] : tensor<8x1xf32> into tensor<8xf32>
  %v = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%u, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%a, %v : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#two, #two, #two], iterator_types = ["parallel", "parallel"]} ins(%b, %c : tensor<8x1xf32>, tensor<8x1xf32>) outs(%f : tensor<8x1xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  func.return %w, %y : tensor<8xf32>, tensor<8x1xf32>
}
