// RUN: irkit-opt %s -p join-siblings | filecheck %s
// RUN: irkit-opt %s -p join-siblings --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'join-siblings{device="h200"}' | filecheck %s --check-prefix=GPU

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

// The heads of a product: on a GPU one op with its sums, of which it stores what is returned. What reads others
// too is by itself. On a CPU each is asked for alone.
// GPU-LABEL: func.func @heads
// GPU: %[[P:.*]] = linalg.generic {{.*}}"reduction"]
// GPU: %[[M:.*]], %[[L:.*]], %[[S:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<?x1xf32>)
// GPU: arith.addf
// GPU: arith.cmpf
// GPU: math.exp
// GPU: linalg.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, i1, f32
// GPU: linalg.generic {{.*}} ins(%[[M]], %z : tensor<?x1xf32>, tensor<?x1xf32>)
// GPU: tensor.collapse_shape %[[L]]
// CHECK-LABEL: func.func @heads
// CHECK: %margin = linalg.generic
// CHECK: %label = linalg.generic {{.*}} ins(%margin : tensor<?x1xf32>)
// CHECK: %share, %other = linalg.generic
func.func @heads(%a: tensor<?x4xf32>, %b: tensor<4x1xf32>, %z: tensor<?x1xf32>) -> (tensor<?xi1>, tensor<?xf32>, tensor<?x1xf32>, tensor<?x1xf32>) {
  %c = arith.constant 0.0 : f32
  %0 = arith.constant 0 : index
  %n = tensor.dim %a, %0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x1xf32>
  %t = tensor.empty(%n) : tensor<?x1xi1>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x1xf32>) -> tensor<?x1xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<?x4xf32>, tensor<4x1xf32>) outs(%f : tensor<?x1xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  %margin = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<?x1xf32>) outs(%e : tensor<?x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %k = arith.constant 2.0 : f32
    %s = arith.addf %x, %k : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  %label = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%margin : tensor<?x1xf32>) outs(%t : tensor<?x1xi1>) {
  ^bb0(%x: f32, %o: i1):
    %k = arith.constant 0.0 : f32
    %s = arith.cmpf ogt, %x, %k : f32
    linalg.yield %s : i1
  } -> tensor<?x1xi1>
  %share = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%margin : tensor<?x1xf32>) outs(%e : tensor<?x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = math.exp %x : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  %other = linalg.generic {indexing_maps = [#two, #two, #two], iterator_types = ["parallel", "parallel"]} ins(%margin, %z : tensor<?x1xf32>, tensor<?x1xf32>) outs(%e : tensor<?x1xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  %labels = tensor.collapse_shape %label [[0 : i64, 1 : i64]] : tensor<?x1xi1> into tensor<?xi1>
  %margins = tensor.collapse_shape %margin [[0 : i64, 1 : i64]] : tensor<?x1xf32> into tensor<?xf32>
  func.return %labels, %margins, %share, %other : tensor<?xi1>, tensor<?xf32>, tensor<?x1xf32>, tensor<?x1xf32>
}

// Where all sizes are known, the product is left to whoever computes it.
// GPU-LABEL: func.func @one_size
// GPU: %margin = linalg.generic
// GPU: linalg.generic {{.*}} ins(%margin, %z : tensor<8x1xf32>, tensor<8x1xf32>)
func.func @one_size(%a: tensor<8x4xf32>, %b: tensor<4x1xf32>, %z: tensor<8x1xf32>) -> (tensor<8xi1>, tensor<8xf32>, tensor<8x1xf32>, tensor<8x1xf32>) {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x1xf32>
  %t = tensor.empty() : tensor<8x1xi1>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<8x1xf32>) -> tensor<8x1xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<8x4xf32>, tensor<4x1xf32>) outs(%f : tensor<8x1xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  %margin = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<8x1xf32>) outs(%e : tensor<8x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %k = arith.constant 2.0 : f32
    %s = arith.addf %x, %k : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  %label = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%margin : tensor<8x1xf32>) outs(%t : tensor<8x1xi1>) {
  ^bb0(%x: f32, %o: i1):
    %k = arith.constant 0.0 : f32
    %s = arith.cmpf ogt, %x, %k : f32
    linalg.yield %s : i1
  } -> tensor<8x1xi1>
  %share = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%margin : tensor<8x1xf32>) outs(%e : tensor<8x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = math.exp %x : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  %other = linalg.generic {indexing_maps = [#two, #two, #two], iterator_types = ["parallel", "parallel"]} ins(%margin, %z : tensor<8x1xf32>, tensor<8x1xf32>) outs(%e : tensor<8x1xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  %labels = tensor.collapse_shape %label [[0 : i64, 1 : i64]] : tensor<8x1xi1> into tensor<8xi1>
  %margins = tensor.collapse_shape %margin [[0 : i64, 1 : i64]] : tensor<8x1xf32> into tensor<8xf32>
  func.return %labels, %margins, %share, %other : tensor<8xi1>, tensor<8xf32>, tensor<8x1xf32>, tensor<8x1xf32>
}
