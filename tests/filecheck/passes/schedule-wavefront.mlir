// RUN: irkit-opt %s -p schedule-wavefront | filecheck %s
// RUN: irkit-opt %s -p schedule-wavefront,schedule-wavefront | filecheck %s
// RUN: not irkit-opt %S/partition-rtasks.mlir -p schedule-wavefront 2>&1 | filecheck %s --check-prefix=EARLY
// An rOperator whose grid and rKernel are there already has no other choice; see choices.mlir for one that has.

// One wave after the other. Each vEU reads what it wrote itself, so that none has to wait.
// The function stays: the schedule is proved against it.
// CHECK:      func.func @main
// CHECK:      task.program @main_schedule of @main attributes {device = @test4} {
// CHECK-NEXT:   %x = task.buffer {space = "input", port = 0 : i64} : tensor<8xf32>
// CHECK-NEXT:   [[y:%.*]] = task.buffer {space = "output", port = 0 : i64} : tensor<8xf32>
// CHECK-NEXT:   [[a:%.*]] = task.buffer {space = "arena"} : tensor<8xf32>
// CHECK-NEXT:   [[b:%.*]] = task.buffer {space = "arena"} : tensor<8xf32>
// CHECK-NEXT:   [[t0:%.*]] = task.append @exp to [0:3] wave 0 reads(%x) writes([[a]])
// CHECK-NEXT:   [[t1:%.*]] = task.append @exp to [0:3] wave 1 reads([[a]]) writes([[b]])
// CHECK-NEXT:   {{.*}} = task.append @exp to [0:3] wave 2 reads([[b]]) writes([[y]])
// CHECK-NOT:  task.program
// EARLY:      error: pass 'schedule-wavefront' requires the partitioned level, but 'task.roperator' has no 'rkernel', nor 'alternatives' instead
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
