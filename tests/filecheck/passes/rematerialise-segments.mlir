// RUN: irkit-opt %s -p 'rematerialise' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p 'rematerialise,schedule-memory,plan-memory,verify-schedule' | filecheck %s --check-prefix=PLAN

// Of the user's segment "first", what is read outside of it before the turn is kept, and the rest made again, with
// no budget. State is read again before it is written.
// CHECK:       func.func @main
// CHECK-NEXT:    %[[A:.*]] = task.launch @f(%x)
// CHECK-NEXT:    %[[B:.*]] = task.launch @g(%[[A]], %s)
// CHECK-NEXT:    %[[C:.*]] = task.launch @f(%[[B]])
// CHECK-NEXT:    %[[AGAIN:.*]] = task.launch @f(%x)
// CHECK-NEXT:    %[[D:.*]] = task.launch @g(%[[C]], %[[AGAIN]])
// CHECK-NEXT:    %[[E:.*]] = task.launch @g(%[[D]], %[[B]])
// CHECK-NEXT:    %[[F:.*]] = task.launch @f(%[[E]])
// CHECK-NEXT:    return %[[E]], %[[F]]
// PLAN:        verified = "
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
func.func @main(%x: tensor<16x64xf32>, %s: tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>) attributes {irkit.inputs = ["x", "s"], irkit.outputs = ["e", "f"], irkit.state = array<i64: 1, 1>} {
  %a = task.launch @f(%x) : (tensor<16x64xf32>) -> tensor<16x64xf32> loc("segment first"("model.py":3:1))
  %b = task.launch @g(%a, %s) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32> loc("segment first"("model.py":4:1))
  %c = task.launch @f(%b) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %d = task.launch @g(%c, %a) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %e = task.launch @g(%d, %b) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %f = task.launch @f(%e) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  return %e, %f : tensor<16x64xf32>, tensor<16x64xf32>
}
