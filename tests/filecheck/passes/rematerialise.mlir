// RUN: irkit-opt %s -p 'rematerialise{budget=12288}' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p 'rematerialise{budget=12288},schedule-memory,plan-memory,verify-schedule' | filecheck %s --check-prefix=PLAN
// RUN: irkit-opt %s -p 'schedule-memory,plan-memory,verify-schedule' | filecheck %s --check-prefix=WITHOUT
// RUN: irkit-opt %s -p 'rematerialise{budget=12288}' --remarks=applied -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: irkit-opt %s -p 'rematerialise{budget=16384}' | filecheck %s --check-prefix=ENOUGH
// RUN: not irkit-opt %s -p 'rematerialise{budget=12287}' 2>&1 | filecheck %s --check-prefix=LEAST

// The first value is made again where the last step reads it.
// CHECK:       func.func @main
// CHECK-NEXT:    %[[A:.*]] = task.launch @f(%x)
// CHECK-NEXT:    %[[B:.*]] = task.launch @f(%[[A]])
// CHECK-NEXT:    %[[C:.*]] = task.launch @f(%[[B]])
// CHECK-NEXT:    %[[D:.*]] = task.launch @g(%[[C]], %[[B]])
// CHECK-NEXT:    %[[AGAIN:.*]] = task.launch @f(%x)
// CHECK-NEXT:    %[[E:.*]] = task.launch @g(%[[D]], %[[AGAIN]])
// PLAN:        arena_bytes = 12288 : i64
// PLAN-SAME:   verified = "
// WITHOUT:     arena_bytes = 16384 : i64
// REMARK:      remark: [applied] rematerialise/Rematerialise: {{.*}}12288 bytes in use at once, of 16384; 1 launches again, 1.{{[0-9]+}} times the time
// ENOUGH-COUNT-3: task.launch @f
// ENOUGH-NOT:  task.launch @f
// LEAST:       budget = 12287: the least that was found is 12288 bytes in use at once, of 16384 without recomputation
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @f(%a : tensor<16x64xf32>) -> tensor<16x64xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1, 1>, parameters = {}, cost = 1500.0 : f64}>]} {
  %e = tensor.empty() : tensor<16x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<16x64xf32>) outs(%e : tensor<16x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.tanh %p : f32
    linalg.yield %s : f32
  } -> tensor<16x64xf32>
  task.yield %y : tensor<16x64xf32>
}
task.roperator @g(%a : tensor<16x64xf32>, %b : tensor<16x64xf32>) -> tensor<16x64xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1, 1>, parameters = {}, cost = 1500.0 : f64}>]} {
  %e = tensor.empty() : tensor<16x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<16x64xf32>, tensor<16x64xf32>) outs(%e : tensor<16x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<16x64xf32>
  task.yield %y : tensor<16x64xf32>
}
func.func @main(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %a = task.launch @f(%x) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %b = task.launch @f(%a) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %c = task.launch @f(%b) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %d = task.launch @g(%c, %b) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %e = task.launch @g(%d, %a) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  return %e : tensor<16x64xf32>
}
