// RUN: irkit-opt %s -p schedule-wavefront,plan-memory | filecheck %s
// RUN: irkit-opt %s -p schedule-wavefront,plan-memory,plan-memory | filecheck %s
// RUN: not irkit-opt %s -p plan-memory 2>&1 | filecheck %s --check-prefix=EARLY

// Every buffer of the arena has an offset, and the plan says how near the bound it is.
// CHECK:      task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 512 : i64, row_bytes = 0 : i64, constant_bytes = 0 : i64, shared_bytes = 0 : i64, arena_ratio = 1.000000e+00 : f64, memory = {arena_lower_bound = 512 : i64, arena_proved_bound = 512 : i64, arena_greedy_bytes = 512 : i64}} {
// CHECK:        task.buffer {space = "arena", offset = 0 : i64} : tensor<8xf32>
// CHECK-NEXT:   task.buffer {space = "arena", offset = 256 : i64} : tensor<8xf32>
// EARLY:      error: pass 'plan-memory' failed: the module has no task.program: run schedule-wavefront first
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @exp(%a : tensor<8xf32>) -> tensor<8xf32> attributes {grid = array<i64: 4>, rkernel = "map.rows", cost = 100.0 : f64} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = task.launch @exp(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = task.launch @exp(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = task.launch @exp(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
