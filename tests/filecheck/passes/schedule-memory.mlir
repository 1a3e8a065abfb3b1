// RUN: irkit-opt %s -p schedule-memory --check-semantics | filecheck %s
// RUN: irkit-opt %s -p schedule-memory,plan-memory,verify-schedule | filecheck %s --check-prefix=PROVED
// RUN: irkit-opt %s -p schedule-wavefront,plan-memory,verify-schedule | filecheck %s --check-prefix=WAVES
// RUN: not irkit-opt %S/partition-rtasks.mlir -p schedule-memory 2>&1 | filecheck %s --check-prefix=EARLY

// Each long value is used up before the next is made, where the given order makes all of them first.
// CHECK:      func.func @main
// CHECK:      task.program @main_schedule of @main attributes {device = @test4} {
// CHECK:        task.append @make to [0:0] wave 0
// CHECK-NEXT:   task.append @use to [0:0] wave 1
// CHECK-NEXT:   task.append @make to [0:0] wave 2
// CHECK-NEXT:   task.append @use to [0:0] wave 3
// CHECK-NEXT:   task.append @sum to [0:0] wave 4
// PROVED:     arena_bytes = 4608 : i64
// PROVED-SAME: memory = {arena_lower_bound = 4608 : i64, arena_proved_bound = 4608 : i64, arena_greedy_bytes = 4608 : i64}
// PROVED-SAME: verified = "
// WAVES:      arena_bytes = 8704 : i64
// EARLY:      error: pass 'schedule-memory' requires the partitioned level, but 'task.roperator' has no 'rkernel', nor 'alternatives' instead
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @make(%a : tensor<64xf32>) -> tensor<16x64xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1, 1>, parameters = {}, cost = 1500.0 : f64}>]} {
  %e = tensor.empty() : tensor<16x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64xf32>) outs(%e : tensor<16x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<16x64xf32>
  task.yield %y : tensor<16x64xf32>
}
task.roperator @use(%a : tensor<16x64xf32>) -> tensor<1x64xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1, 1>, parameters = {}, cost = 1500.0 : f64}>]} {
  %f = tensor.extract_slice %a[3, 0] [1, 64] [1, 1] : tensor<16x64xf32> to tensor<1x64xf32>
  %e = tensor.empty() : tensor<1x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%f : tensor<1x64xf32>) outs(%e : tensor<1x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.sqrt %p : f32
    linalg.yield %s : f32
  } -> tensor<1x64xf32>
  task.yield %y : tensor<1x64xf32>
}
task.roperator @sum(%a : tensor<1x64xf32>, %b : tensor<1x64xf32>) -> tensor<1x64xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1, 1>, parameters = {}, cost = 1500.0 : f64}>]} {
  %e = tensor.empty() : tensor<1x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<1x64xf32>, tensor<1x64xf32>) outs(%e : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<1x64xf32>
  task.yield %y : tensor<1x64xf32>
}
func.func @main(%x: tensor<64xf32>, %z: tensor<64xf32>) -> tensor<1x64xf32> {
  %0 = task.launch @make(%x) : (tensor<64xf32>) -> tensor<16x64xf32>
  %1 = task.launch @make(%z) : (tensor<64xf32>) -> tensor<16x64xf32>
  %2 = task.launch @use(%0) : (tensor<16x64xf32>) -> tensor<1x64xf32>
  %3 = task.launch @use(%1) : (tensor<16x64xf32>) -> tensor<1x64xf32>
  %4 = task.launch @sum(%2, %3) : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  return %4 : tensor<1x64xf32>
}
