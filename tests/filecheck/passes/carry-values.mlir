// Two products in turn on the same vEUs: the second gathers the first's result, whose elements say that they
// are there, and waits for nothing. What a map stores, or is waited for beside it, is waited for as it was.
// RUN: irkit-opt %s -p carry-values | filecheck %s
// RUN: irkit-opt %s -p carry-values,carry-values --remarks=applied | filecheck %s
// RUN: irkit-opt %s -p carry-values --print-op-generic | irkit-opt - | filecheck %s

task.vdevice @gpu4 {kind = "cuda", veus = 4 : i64, threads = 256 : i64, shared_bytes = 65536 : i64, l2_bytes = 1024 : i64, wait_ns = 750.0 : f64, multiprocessors = 4 : i64, arch = "sm_90a", rates = {byte = 1.0 : f64}}
task.roperator @product(%x : tensor<1x8xf32>, %w : tensor<8x8xf32>) -> tensor<1x8xf32>
    attributes {grid = array<i64: 1, 4>, rkernel = "gemv.rows", parameters = {LANES = 32 : i64, PASS = 2 : i64, BLOCK = 512 : i64}, scratch = 256 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, u, k) -> (b, k)>, affine_map<(b, u, k) -> (u, k)>, affine_map<(b, u, k) -> (b, u)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x8xf32>, tensor<8x8xf32>) outs(%f : tensor<1x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  task.yield %y : tensor<1x8xf32>
}
task.roperator @negate(%a : tensor<1x8xf32>) -> tensor<1x8xf32>
    attributes {grid = array<i64: 1, 4>, rkernel = "map.elements"} {
  %e = tensor.empty() : tensor<1x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, u) -> (b, u)>, affine_map<(b, u) -> (b, u)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<1x8xf32>) outs(%e : tensor<1x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.negf %p : f32
    linalg.yield %n : f32
  } -> tensor<1x8xf32>
  task.yield %y : tensor<1x8xf32>
}
// CHECK:      [[t0:%.*]] = task.append @product to [0:3] wave 0 reads(%x, %w) writes(%h0){{$}}
// CHECK-NEXT: [[t1:%.*]] = task.append @product to [0:3] wave 1 reads(%h0, %w) writes(%h1) carried [0]{{$}}
// CHECK-NEXT: [[t2:%.*]] = task.append @negate to [0:3] wave 2 reads(%h1) writes(%h2){{$}}
// CHECK-NEXT: [[t3:%.*]] = task.append @product to [0:3] wave 3 wait([[t2]]) reads(%h2, %w) writes(%y){{$}}
task.program @main_schedule of @main attributes {device = @gpu4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<1x8xf32>
  %w = task.buffer {space = "constant", source = "w"} : tensor<8x8xf32>
  %h0 = task.buffer {space = "arena"} : tensor<1x8xf32>
  %h1 = task.buffer {space = "arena"} : tensor<1x8xf32>
  %h2 = task.buffer {space = "arena"} : tensor<1x8xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<1x8xf32>
  %t0 = task.append @product to [0:3] wave 0 reads(%x, %w) writes(%h0)
  %t1 = task.append @product to [0:3] wave 1 wait(%t0) reads(%h0, %w) writes(%h1)
  %t2 = task.append @negate to [0:3] wave 2 reads(%h1) writes(%h2)
  %t3 = task.append @product to [0:3] wave 3 wait(%t2) reads(%h2, %w) writes(%y)
}
