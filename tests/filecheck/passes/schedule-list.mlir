// RUN: irkit-opt %s -p schedule-list --check-semantics | filecheck %s
// RUN: irkit-opt %s -p schedule-list,plan-memory,verify-schedule | filecheck %s --check-prefix=PROVED
// RUN: irkit-opt %s -p schedule-list,schedule-wavefront | filecheck %s
// RUN: irkit-opt %s -p schedule-list --remarks=applied -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: irkit-opt %s -p schedule-auto --remarks=applied -o %t.mlir 2>&1 | filecheck %s --check-prefix=AUTO
// RUN: irkit-opt %s -p schedule-auto,plan-memory,verify-schedule | filecheck %s --check-prefix=PROVED
// RUN: not irkit-opt %S/partition-rtasks.mlir -p schedule-list 2>&1 | filecheck %s --check-prefix=EARLY

// The long launch and the chain of two short ones are ready together and side by side: the long one gets three
// vEUs, the chain one, and no wave comes between the chain's two.
// CHECK:      func.func @main
// CHECK:      task.program @main_schedule of @main attributes {device = @test4} {
// CHECK:        task.append @long to [0:2] wave 0 reads(%x)
// CHECK:        task.append @short to [3:3] wave 0 reads(%x)
// CHECK-NEXT:   task.append @short to [3:3] wave 1
// CHECK-NOT:  task.append
// PROVED:     verified = "
// REMARK:     remark: [applied] schedule-list/ScheduleList: {{.*}}3 launches in 2 waves, estimated at 4000 ns
// AUTO:       remark: [applied] schedule-auto/ScheduleAuto: {{.*}}3 launches in 2 waves, estimated at {{.*}} ns, by policy '{{list|wavefront}}'
// EARLY:      error: pass 'schedule-list' requires the partitioned level, but 'task.roperator' has no 'rkernel', nor 'alternatives' instead
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @long(%a : tensor<12xf32>) -> tensor<12xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {}, cost = 3000.0 : f64}>,
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 3>, parameters = {}, cost = 4000.0 : f64}>,
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1>, parameters = {}, cost = 12000.0 : f64}>]} {
  %e = tensor.empty() : tensor<12xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<12xf32>) outs(%e : tensor<12xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<12xf32>
  task.yield %y : tensor<12xf32>
}
task.roperator @short(%a : tensor<12xf32>) -> tensor<12xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1>, parameters = {}, cost = 1500.0 : f64}>]} {
  %e = tensor.empty() : tensor<12xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<12xf32>) outs(%e : tensor<12xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.sqrt %p : f32
    linalg.yield %s : f32
  } -> tensor<12xf32>
  task.yield %y : tensor<12xf32>
}
func.func @main(%x: tensor<12xf32>) -> (tensor<12xf32>, tensor<12xf32>) {
  %0 = task.launch @short(%x) : (tensor<12xf32>) -> tensor<12xf32>
  %1 = task.launch @short(%0) : (tensor<12xf32>) -> tensor<12xf32>
  %2 = task.launch @long(%x) : (tensor<12xf32>) -> tensor<12xf32>
  return %1, %2 : tensor<12xf32>, tensor<12xf32>
}
