// RUN: irkit-opt %s -p schedule-wavefront --check-semantics | filecheck %s
// RUN: irkit-opt %s -p schedule-wavefront,plan-memory,verify-schedule | filecheck %s --check-prefix=PROVED
// RUN: irkit-opt %s -p schedule-wavefront --remarks=applied -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: irkit-opt %s -p schedule-wavefront,schedule-wavefront | filecheck %s

// The first launch is alone, and takes what is fastest alone: 4 rTasks. The next two share the device, and
// end soonest as 2 rTasks each. So one rOperator becomes two, and launches name the one that they are run by.
// CHECK:      task.roperator @exp({{.*}} attributes {rkernel = "map.rows", grid = array<i64: 4>, parameters = {}, cost = 3.000000e+03 : f64} {
// CHECK:        math.exp
// CHECK:      task.roperator @exp_2({{.*}} attributes {rkernel = "map.rows", grid = array<i64: 2>, parameters = {}, cost = 4.000000e+03 : f64} {
// CHECK:        math.exp
// A name that is taken is not given again.
// CHECK:      task.roperator @exp_1({{.*}} attributes {rkernel = "map.rows", grid = array<i64: 1>, parameters = {}, cost = 9.000000e+03 : f64} {
// CHECK-NOT:  alternatives
// CHECK:      func.func @main
// CHECK-NEXT:   [[a:%.*]] = task.launch @exp(%x)
// CHECK-NEXT:   [[b:%.*]] = task.launch @exp_2([[a]])
// CHECK-NEXT:   [[c:%.*]] = task.launch @exp_2([[a]])
// CHECK:      task.append @exp to [0:3] wave 0
// CHECK-NEXT: task.append @exp_2 to [{{0:1|2:3}}] wave 1
// CHECK-NEXT: task.append @exp_2 to [{{0:1|2:3}}] wave 1
// CHECK-NOT:  task.append
// PROVED:     verified = "
// REMARK:     remark: [applied] schedule-wavefront/ScheduleWavefront: {{.*}}3 launches in 2 waves, estimated at 7100 ns
// REMARK:     remark: [applied] schedule-wavefront/ChooseRKernel: {{.*}}@exp: map.rows in a grid of [4], 3000 ns an rTask, launched 1 times
// REMARK:     remark: [applied] schedule-wavefront/ChooseRKernel: {{.*}}@exp_2: map.rows in a grid of [2], 4000 ns an rTask, launched 2 times
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @exp(%a : tensor<8xf32>) -> tensor<8xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {}, cost = 3000.0 : f64}>,
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 2>, parameters = {}, cost = 4000.0 : f64}>,
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1>, parameters = {}, cost = 9000.0 : f64}>]} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
// What no launch uses is the first of its alternatives.
task.roperator @exp_1(%a : tensor<8xf32>) -> tensor<8xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1>, parameters = {}, cost = 9000.0 : f64}>]} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = task.launch @exp(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = task.launch @exp(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = task.launch @exp(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}
