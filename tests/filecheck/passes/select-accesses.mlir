// RUN: irkit-opt %s -p schedule-wavefront,pin-residents,plan-memory,select-accesses | filecheck %s
// RUN: irkit-opt %s -p schedule-wavefront,pin-residents,plan-memory,select-accesses,select-accesses,verify-schedule | filecheck %s
// RUN: not irkit-opt %s -p schedule-wavefront,pin-residents,plan-memory,verify-schedule 2>&1 | filecheck %s --check-prefix=STALE

// What every append places at multiples of 16 bytes is read in vectors, what every append keeps has a copy;
// one append that does not is enough against either. What is said already is found anew.
// CHECK: task.roperator @kept({{.*}} attributes {{.*}}fastmath = #arith.fastmath<reassoc,contract>, vector_bytes = 16 : i64, residents = array<i64: 1>}
// CHECK: task.roperator @odd({{.*}} attributes {{.*}}fastmath = #arith.fastmath<reassoc,contract>}
// A compiler is told the same of all operands, or of none.
// CHECK: task.roperator @told({{.*}}fastmath = #arith.fastmath<contract>, vector_bytes = 16 : i64}
// CHECK: task.roperator @apart({{.*}}fastmath = #arith.fastmath<contract>}
// STALE: error: pass 'verify-schedule' failed: @odd with rKernel 'gemv.rows': vectors of 16 bytes of what no append places at multiples of that
task.vdevice @h200 {kind = "cuda", veus = 132 : i64, threads = 256 : i64, shared_bytes = 229376 : i64, multiprocessors = 132 : i64, l2_bytes = 52428800 : i64, arch = "sm_90a", wait_ns = 750.0 : f64, rates = {byte = 0.03 : f64}}
task.roperator @kept(%x : tensor<1x64xf32>, %w : tensor<8x64xf32>, %c : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {rkernel = "gemv.rows", grid = array<i64: 1, 1>, cost = 100.0 : f64, parameters = {BLOCK = 512 : i64, LANES = 32 : i64, PASS = 2 : i64}, scratch = 256 : i64, fastmath = #arith.fastmath<reassoc,contract>} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x64xf32>, tensor<8x64xf32>) outs(%c : tensor<1x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  task.yield %y : tensor<1x8xf32>
}
task.roperator @odd(%x : tensor<1x64xf32>, %w : tensor<8x64xf32>, %c : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {rkernel = "gemv.rows", grid = array<i64: 1, 1>, cost = 100.0 : f64, parameters = {BLOCK = 512 : i64, LANES = 32 : i64, PASS = 2 : i64}, scratch = 256 : i64, fastmath = #arith.fastmath<reassoc,contract>, vector_bytes = 16 : i64} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x64xf32>, tensor<8x64xf32>) outs(%c : tensor<1x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  task.yield %y : tensor<1x8xf32>
}
task.roperator @told(%x : tensor<1x64xf32>, %w : tensor<8x64xf32>, %c : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {rkernel = "reduce.thread", grid = array<i64: 1, 1>, cost = 100.0 : f64, parameters = {}, fastmath = #arith.fastmath<contract>} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x64xf32>, tensor<8x64xf32>) outs(%c : tensor<1x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  task.yield %y : tensor<1x8xf32>
}
task.roperator @apart(%x : tensor<1x64xf32>, %w : tensor<8x64xf32>, %c : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {rkernel = "reduce.thread", grid = array<i64: 1, 1>, cost = 100.0 : f64, parameters = {}, fastmath = #arith.fastmath<contract>} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x64xf32>, tensor<8x64xf32>) outs(%c : tensor<1x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  task.yield %y : tensor<1x8xf32>
}
func.func @main(%x: tensor<1x64xf32>, %z: tensor<2x65xf32>, %c: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) {
  %w = arith.constant dense<0.5> : tensor<8x64xf32>
  %v = tensor.extract_slice %z[1, 0] [1, 64] [1, 1] : tensor<2x65xf32> to tensor<1x64xf32>
  %0 = task.launch @kept(%x, %w, %c) : (tensor<1x64xf32>, tensor<8x64xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %1 = task.launch @kept(%x, %w, %0) : (tensor<1x64xf32>, tensor<8x64xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %2 = task.launch @odd(%x, %w, %c) : (tensor<1x64xf32>, tensor<8x64xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %3 = task.launch @odd(%v, %w, %c) : (tensor<1x64xf32>, tensor<8x64xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %4 = task.launch @told(%x, %w, %c) : (tensor<1x64xf32>, tensor<8x64xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %5 = task.launch @apart(%v, %w, %c) : (tensor<1x64xf32>, tensor<8x64xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  func.return %0, %1, %2, %3, %4, %5 : tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>
}
