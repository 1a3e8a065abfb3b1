// Alternatives whose costs hang on the rows of an open batch: a schedule for each range of rows in which another is best.
// RUN: irkit-opt %s -p schedule-wavefront --check-semantics | filecheck %s
// RUN: irkit-opt %s -p schedule-wavefront,plan-memory,verify-schedule --check-semantics | filecheck %s --check-prefix=PROVED
// RUN: irkit-opt %s -p schedule-wavefront --remarks=applied -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK

// At 1 row @some takes 100 ns in one share, and 300 in four; @both then waits 100 ns for the one. At 2 rows that is 310
// and 320 ns in all, at 3 rows 410 and 330.
// CHECK:      task.roperator @some(%a: tensor<?x8xf32>) {{.*}}grid = array<i64: 1, 1>{{.*}}cost = 1.024000e+05
// CHECK:      task.roperator @some_1(%a: tensor<?x8xf32>) {{.*}}grid = array<i64: 4, 1>, parameters = {}, cost = 1.053000e+04 : f64, batches = array<i64: 1, 32, 1024>, costs = array<f64: 3.000000e+02, 6.100000e+02, 1.053000e+04>
// CHECK:      task.roperator @both
// CHECK-NOT:  @both_1
// CHECK:      func.func @main
// CHECK:      task.program @main_schedule of @main rows [0:2] attributes {device = @test4} {
// CHECK:        %[[one:.*]] = task.append @some to [0:0] wave 0
// CHECK-NEXT:   task.append @both to [0:3] wave 1 wait(%[[one]])
// CHECK:      task.program @main_schedule_3 of @main rows [3:] attributes {device = @test4} {
// CHECK:        task.append @some_1 to [0:3] wave 0
// CHECK-NEXT:   task.append @both to [0:3] wave 1 reads
// PROVED:     rows [0:2] attributes {{.*}}verified = "[[digest:.*]]"} {
// PROVED:     rows [3:] attributes {{.*}}verified = "[[digest]]"} {
// REMARK:     remark: [applied] schedule-wavefront/ScheduleWavefront: {{.*}}rows 0 to 2: 2 launches in 2 waves
// REMARK:     remark: [applied] schedule-wavefront/ScheduleWavefront: {{.*}}rows 3 and more: 2 launches in 2 waves
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @some(%a : tensor<?x8xf32>) -> tensor<?x8xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4, 1>, parameters = {}, cost = 10530.0 : f64, batches = array<i64: 1, 32, 1024>, costs = array<f64: 300.0, 610.0, 10530.0>}>,
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1, 1>, parameters = {}, cost = 102400.0 : f64, batches = array<i64: 1, 32, 1024>, costs = array<f64: 100.0, 3200.0, 102400.0>}>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  task.yield %y : tensor<?x8xf32>
}
task.roperator @both(%a : tensor<?x8xf32>) -> tensor<?x8xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4, 1>, parameters = {}, cost = 10.0 : f64}>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.sqrt %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  task.yield %y : tensor<?x8xf32>
}
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = task.launch @some(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = task.launch @both(%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
