// RUN: not irkit-opt %s -t 'numba{target=cpu}' --device=cpu2 2>&1 | filecheck %s
// CHECK: error: emission failed: the module has no task.vdevice

task.roperator @swap(%a : tensor<?x4xf32>, %b : tensor<4xi64>) -> (tensor<4xi64>, tensor<?x4xf32>) {
  task.yield %b, %a : tensor<4xi64>, tensor<?x4xf32>
}
task.roperator @same(%a : tensor<8xf32>) -> tensor<8xf32>
    attributes {grid = array<i64: 100000>, rkernel = "map.rows", parameters = {STRIP = 2 : i64}, sources = "graph.identity", cost = 2.5 : f64} {
  task.yield %a : tensor<8xf32>
}
func.func @unscheduled(%x: tensor<8xf32>, %y: tensor<?x4xf32>, %i: tensor<4xi64>) -> tensor<8xf32> {
  %0 = task.launch @same(%x) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 64 : i64, row_bytes = 0 : i64, arena_ratio = 1.0 : f64, verified = "2 appends, 8 rTasks", irkit.inputs = ["x"]} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xf32>
  %v = task.view %x {offset = 32 : i64} : tensor<16xf32> -> tensor<8xf32>
  %h = task.buffer {space = "arena", offset = 0 : i64} : tensor<8xf32>
}
