// RUN: irkit-opt %s -p 'partition-rtasks{device="cpu2" candidates=10},measure-rtasks' | filecheck %s
// RUN: irkit-opt %s -p 'partition-rtasks{device="cpu2" candidates=10},measure-rtasks' --remarks=applied -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: irkit-opt %s -p 'partition-rtasks{device="cpu2" candidates=10},measure-rtasks,schedule-wavefront,plan-memory,verify-schedule' | filecheck %s --check-prefix=CHOSEN
// RUN: irkit-opt %s -p 'partition-rtasks{device="cpu2" candidates=10},measure-rtasks,measure-rtasks' | filecheck %s
// RUN: irkit-opt %s -p 'partition-rtasks{device="test4"},measure-rtasks' --remarks=missed 2>&1 | filecheck %s --check-prefix=ELSEWHERE
// RUN: not irkit-opt %s -p 'partition-rtasks{candidates=-1}' 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not irkit-opt %s -p measure-rtasks 2>&1 | filecheck %s --check-prefix=EARLY

// CHECK:      task.roperator @exp({{.*}}alternatives = [#task.alternative<{rkernel = "map.rows", grid = array<i64: {{.*}}>, parameters = {}, cost = {{.*}} : f64, measured_on = "{{.+}}"}>
// CHECK:        math.exp
// What no launch uses is not measured.
// CHECK:      task.roperator @unused
// CHECK-NOT:  measured_on
// CHECK:      func.func @main
// REMARK:     remark: [applied] measure-rtasks/MeasureRTasks: {{.*}}alternatives stay; the fastest alone is map.rows in a grid of [{{.*}}], {{.*}} ns an rTask, estimated at
// CHOSEN:     task.roperator @exp({{.*}} cost = {{.*}} : f64, measured_on = "{{.+}}"}
// CHOSEN:     verified = "
// ELSEWHERE:     remark: [missed] measure-rtasks/MeasureRTasks: {{.*}}device 'test4' is of tests, and no machine
// ELSEWHERE-NOT: measured_on
// NEGATIVE:   error: pass 'partition-rtasks' failed: candidates = -1: expected 0 or more
// EARLY:      error: pass 'measure-rtasks' requires the partitioned level
task.roperator @exp(%a : tensor<800xf32>) -> tensor<800xf32> {
  %e = tensor.empty() : tensor<800xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<800xf32>) outs(%e : tensor<800xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<800xf32>
  task.yield %y : tensor<800xf32>
}
task.roperator @unused(%a : tensor<80xf32>) -> tensor<80xf32> {
  %e = tensor.empty() : tensor<80xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<80xf32>) outs(%e : tensor<80xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<80xf32>
  task.yield %y : tensor<80xf32>
}
func.func @main(%x: tensor<800xf32>) -> tensor<800xf32> {
  %0 = task.launch @exp(%x) : (tensor<800xf32>) -> tensor<800xf32>
  %1 = task.launch @exp(%0) : (tensor<800xf32>) -> tensor<800xf32>
  return %1 : tensor<800xf32>
}
