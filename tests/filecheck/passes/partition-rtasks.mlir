// RUN: irkit-opt %s -p 'partition-rtasks{device=test4}' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p 'partition-rtasks{device=test4},partition-rtasks{device=test4}' | filecheck %s
// RUN: irkit-opt %s -p 'partition-rtasks{device=cpu1}' | filecheck %s --check-prefix=ONE
// RUN: irkit-opt %s -p 'partition-rtasks{device=h200}' | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -p 'partition-rtasks{device=rtx4090}' | filecheck %s --check-prefix=ADA
// RUN: irkit-opt %s -p 'partition-rtasks{device=a100}' | filecheck %s --check-prefix=AMPERE
// RUN: not irkit-opt %s -p 'partition-rtasks{device=tpu}' 2>&1 | filecheck %s --check-prefix=DEVICE

// RUN: irkit-opt %s -p 'partition-rtasks{device=h200}' --remarks=applied -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK

// Adds a device, and to each rOperator its alternatives: the fastest on ever fewer vEUs; the body
// stays as it is, and nothing is chosen. On a GPU, more rTasks than one are no faster for so few elements.
// CHECK:      task.vdevice @test4 {kind = "test", veus = 4 : i64
// CHECK-NOT:  task.vdevice
// CHECK:      task.roperator @exp({{.*}} attributes {alternatives = [#task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {}, cost = {{[0-9.e+]+}} : f64}>, #task.alternative<{rkernel = "map.rows", grid = array<i64: 2>, {{[^#]*}}#task.alternative<{rkernel = "map.rows", grid = array<i64: 1>, {{[^#]*}}]} {
// CHECK:        math.exp
// The batch is cut into one share per vEU.
// CHECK:      task.roperator @rows({{.*}} attributes {alternatives = [#task.alternative<{rkernel = "map.rows", grid = array<i64: 4, 1>, {{[^#]*}}]} {
// A polynomial in place of the C library's function is taken four vectors at a time.
// CHECK:      task.roperator @approximate({{.*}} attributes {alternatives = [#task.alternative<{rkernel = "map.interleaved", grid = array<i64: 4>, {{[^#]*}}
// ONE:        task.vdevice @cpu1
// ONE:        task.roperator @exp({{.*}} grid = array<i64: 1>
// ONE:        task.roperator @rows({{.*}} grid = array<i64: 1, 1>
// GPU:        task.vdevice @h200 {kind = "cuda", veus = 132 : i64, threads = 256 : i64, shared_bytes = 232448 : i64, multiprocessors = 132 : i64, l2_bytes = 62914560 : i64, arch = "sm_90a", wait_ns
// GPU:        task.roperator @exp({{.*}} {alternatives = [#task.alternative<{rkernel = "map.elements", grid = array<i64: 1>, {{[^#]*}}#arith.fastmath<contract>}>]} {
// GPU-NOT:    rates_from
// GPU:        task.roperator @rows({{.*}}rkernel = "map.fours", grid = array<i64: 132, 1>
// GPU:        task.roperator @large({{.*}} grid = array<i64: 64, 1>{{.*}} grid = array<i64: 1, 1>
// By name, a GPU that need not be there: grids are for its multiprocessors, rates an estimate.
// ADA:        task.vdevice @rtx4090 {kind = "cuda", veus = 128 : i64, threads = 256 : i64, shared_bytes = 101376 : i64, multiprocessors = 128 : i64, l2_bytes = 75497472 : i64, arch = "sm_89", rates_from = "h200"
// ADA:        task.roperator @rows({{.*}} grid = array<i64: 128, 1>
// AMPERE:     task.vdevice @a100 {kind = "cuda", veus = 108 : i64, threads = 256 : i64, shared_bytes = 166912 : i64, multiprocessors = 108 : i64, l2_bytes = 41943040 : i64, arch = "sm_80", rates_from = "h200"
// AMPERE:     task.roperator @rows({{.*}} grid = array<i64: 108, 1>
// DEVICE:     error: pass 'partition-rtasks' failed: unknown device 'tpu'
// REMARK:     remark: [applied] partition-rtasks/OfferRKernels: {{.*}}1 alternatives; the fastest alone is map.elements in a grid of [1], {{[0-9]+}} ns an rTask
task.roperator @exp(%a : tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
task.roperator @rows(%a : tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.negf %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  task.yield %y : tensor<?x8xf32>
}
task.roperator @large(%a : tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %e = tensor.empty() : tensor<64x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64x4096xf32>) outs(%e : tensor<64x4096xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<64x4096xf32>
  task.yield %y : tensor<64x4096xf32>
}
func.func @main(%x: tensor<8xf32>, %z: tensor<?x8xf32>) -> (tensor<8xf32>, tensor<?x8xf32>) {
  %0 = task.launch @exp(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = task.launch @rows(%z) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<8xf32>, tensor<?x8xf32>
}
task.roperator @approximate(%a : tensor<8192xf32>) -> tensor<8192xf32> {
  %e = tensor.empty() : tensor<8192xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8192xf32>) outs(%e : tensor<8192xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p fastmath<afn> : f32
    linalg.yield %s : f32
  } -> tensor<8192xf32>
  task.yield %y : tensor<8192xf32>
}
