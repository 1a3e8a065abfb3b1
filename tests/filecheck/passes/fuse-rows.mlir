// RUN: irkit-opt %s -p 'fuse-rows{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p fuse-rows | filecheck %s --check-prefix=CPU
// RUN: irkit-opt %s -p 'fuse-rows{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>

// Rows over their sums, times columns: one op, which reads the rows once.
// CHECK-LABEL: func.func @shares
// CHECK: te.rowwise %x, %c [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] {
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT: %{{.*}} = te.row_reduce %{{.*}} {kind = "add"} : f32
// CHECK-NEXT: arith.divf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: te.yield
// CHECK-NOT: linalg.generic
// CPU-LABEL: func.func @shares
// CPU-NOT: te.rowwise
func.func @shares(%x: tensor<?x10xf32>, %c: tensor<10xf32>) -> tensor<?x10xf32> {
  %i = arith.constant 0 : index
  %n = tensor.dim %x, %i : tensor<?x10xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x10xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %f = tensor.empty(%n) : tensor<?x10xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %s, %c : tensor<?x10xf32>, tensor<?xf32>, tensor<10xf32>) outs(%f : tensor<?x10xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
    %t = arith.divf %p, %q : f32
    %u = arith.mulf %t, %r : f32
    linalg.yield %u : f32
  } -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}

// One number for each row, of two sums; a sum that is returned too is computed twice.
// CHECK-LABEL: func.func @squares
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK: %[[Y:.*]] = te.rowwise %x [affine_map<(d0, d1) -> (d0, d1)>] {
// CHECK: te.row_reduce %{{.*}} {kind = "max"} : f64
// CHECK-NEXT: arith.subf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: te.row_reduce %{{.*}} {kind = "add"} : f64
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: te.yield
// CHECK: } : (tensor<4x6xf64>) -> tensor<4xf64>
// CHECK: return %[[Y]], %[[SUM]]
func.func @squares(%x: tensor<4x6xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %zero = arith.constant 0.0 : f64
  %least = arith.constant 0xFFF0000000000000 : f64
  %e = tensor.empty() : tensor<4xf64>
  %f = tensor.empty() : tensor<4x6xf64>
  %l = linalg.fill ins(%least : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf64>) outs(%l : tensor<4xf64>) {
  ^bb0(%p: f64, %o: f64):
    %t = arith.maximumf %o, %p : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  %d = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<4x6xf64>, tensor<4xf64>) outs(%f : tensor<4x6xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %t = arith.subf %p, %q : f64
    %u = arith.mulf %t, %t : f64
    linalg.yield %u : f64
  } -> tensor<4x6xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<4x6xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%p: f64, %o: f64):
    %t = arith.addf %o, %p : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  %y = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%s : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%p: f64, %o: f64):
    %t = math.sqrt %p : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  return %y, %m : tensor<4xf64>, tensor<4xf64>
}

// What is raised is returned too: it is computed apart, and read.
// CHECK-LABEL: func.func @needed
// CHECK: %[[P:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: te.rowwise %[[P]] [
func.func @needed(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<4x6xf32>
  %p0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.exp %p : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%p0 : tensor<4x6xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%p0, %s : tensor<4x6xf32>, tensor<4xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.divf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %y, %p0 : tensor<4x6xf32>, tensor<4x6xf32>
}

// A sum that goes on from what there is, and rows that no block would go through soon: nothing changes.
// CHECK-LABEL: func.func @others
// CHECK-NOT: te.rowwise
// MISSED: remark: [missed] fuse-rows/FuseRows: 'linalg.generic': its rows have 20000 elements
func.func @others(%x: tensor<4x6xf32>, %b: tensor<4xf32>, %w: tensor<2x20000xf32>) -> (tensor<4x6xf32>, tensor<2x20000xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<4x6xf32>, tensor<4xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.divf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<2xf32>
  %g = tensor.empty() : tensor<2x20000xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %v = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<2x20000xf32>) outs(%z : tensor<2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<2xf32>
  %u = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%w, %v : tensor<2x20000xf32>, tensor<2xf32>) outs(%g : tensor<2x20000xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.divf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x20000xf32>
  return %y, %u : tensor<4x6xf32>, tensor<2x20000xf32>
}
