// Every op of the dialect, read, printed and read again; custom and generic form.
// RUN: irkit-opt %s --verify-roundtrip | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK:      task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 1.000000e+02 : f64, rates = {byte = 1.000000e+00 : f64}}
// GENERIC:    "task.vdevice"() <{sym_name = "test4", kind = "test", veus = 4 : i64
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 1.000000e+02 : f64, rates = {byte = 1.000000e+00 : f64}}

// CHECK-NEXT: task.roperator @swap(%{{.*}}: tensor<?x4xf32>, %{{.*}}: tensor<4xi64>) -> (tensor<4xi64>, tensor<?x4xf32>) {
// CHECK-NEXT:   task.yield %{{.*}}, %{{.*}} : tensor<4xi64>, tensor<?x4xf32>
// CHECK-NEXT: }
// GENERIC:    "task.roperator"() <{sym_name = "swap", function_type = (tensor<?x4xf32>, tensor<4xi64>) -> (tensor<4xi64>, tensor<?x4xf32>)}>
task.roperator @swap(%a : tensor<?x4xf32>, %b : tensor<4xi64>) -> (tensor<4xi64>, tensor<?x4xf32>) {
  task.yield %b, %a : tensor<4xi64>, tensor<?x4xf32>
}

// CHECK-NEXT: task.roperator @same(%{{.*}}: tensor<8xf32>) -> tensor<8xf32> attributes {grid = array<i64: 4>, rkernel = "map.rows", parameters = {STRIP = 2 : i64}, sources = "graph.identity", cost = 2.500000e+00 : f64} {
task.roperator @same(%a : tensor<8xf32>) -> tensor<8xf32>
    attributes {grid = array<i64: 4>, rkernel = "map.rows", parameters = {STRIP = 2 : i64}, sources = "graph.identity", cost = 2.5 : f64} {
  task.yield %a : tensor<8xf32>
}

// CHECK:      task.roperator @offered({{.*}} attributes {alternatives = [#task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {STRIP = 2 : i64}, cost = 2.500000e+00 : f64, scratch = 64 : i64, fastmath = #arith.fastmath<reassoc>}>, #task.alternative<{rkernel = "map.rows", grid = array<i64: 1>, parameters = {}, cost = 8.000000e+00 : f64}>]} {
// GENERIC:    sym_name = "offered", {{.*}}alternatives = [#task.alternative<{
task.roperator @offered(%a : tensor<8xf32>) -> tensor<8xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {STRIP = 2 : i64}, cost = 2.5 : f64, scratch = 64 : i64, fastmath = #arith.fastmath<reassoc>}>,
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 1>, parameters = {}, cost = 8.0 : f64}>]} {
  task.yield %a : tensor<8xf32>
}

// CHECK:      func.func @unscheduled
// CHECK-NEXT:   %{{.*}} = task.launch @same(%x) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:   %{{.*}}, %{{.*}} = task.launch @swap(%y, %i) : (tensor<?x4xf32>, tensor<4xi64>) -> (tensor<4xi64>, tensor<?x4xf32>)
// GENERIC:    "task.launch"(%x) <{callee = @same}> : (tensor<8xf32>) -> tensor<8xf32>
func.func @unscheduled(%x: tensor<8xf32>, %y: tensor<?x4xf32>, %i: tensor<4xi64>) -> tensor<8xf32> {
  %0 = task.launch @same(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1, %2 = task.launch @swap(%y, %i) : (tensor<?x4xf32>, tensor<4xi64>) -> (tensor<4xi64>, tensor<?x4xf32>)
  func.return %0 : tensor<8xf32>
}

// CHECK:      task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 64 : i64, row_bytes = 0 : i64, arena_ratio = 1.000000e+00 : f64, verified = "2 appends, 8 rTasks", irkit.inputs = ["x"]} {
// CHECK-NEXT:   %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xf32>
// CHECK-NEXT:   %w = task.buffer {space = "constant", source = "w_1"} : tensor<8xf32>
// CHECK-NEXT:   %v = task.view %x {offset = 32 : i64} : tensor<16xf32> -> tensor<8xf32>
// CHECK-NEXT:   %h = task.buffer {space = "arena", offset = 0 : i64} : tensor<8xf32>
// CHECK-NEXT:   %y = task.buffer {space = "output", port = 0 : i64} : tensor<8xf32>
// CHECK-NEXT:   %[[t0:.*]] = task.append @same to [0:3] wave 0 reads(%v) writes(%h)
// CHECK-NEXT:   %[[t1:.*]] = task.append @same to [0:1] wave 1 wait(%[[t0]]) reads(%h) writes(%y) resident [0 at 128]
// CHECK-NEXT:   %{{.*}} = task.append @same to [3:3] wave 2 wait(%[[t0]], %[[t1]]) reads(%w) writes(%y)
// GENERIC:    "task.append"(%{{.*}}, %h, %y) <{callee = @same, veus = array<i64: 0, 1>, wave = 1 : i64, residents = array<i64: 0, 128>, operandSegmentSizes = array<i32: 1, 1, 1>}>
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 64 : i64, row_bytes = 0 : i64, arena_ratio = 1.0 : f64, verified = "2 appends, 8 rTasks", irkit.inputs = ["x"]} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xf32>
  %w = task.buffer {space = "constant", source = "w_1"} : tensor<8xf32>
  %v = task.view %x {offset = 32 : i64} : tensor<16xf32> -> tensor<8xf32>
  %h = task.buffer {space = "arena", offset = 0 : i64} : tensor<8xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<8xf32>
  %t0 = task.append @same to [0:3] wave 0 reads(%v) writes(%h)
  %t1 = task.append @same to [0:1] wave 1 wait(%t0) reads(%h) writes(%y) resident [0 at 128]
  %t2 = task.append @same to [3:3] wave 2 wait(%t0, %t1) reads(%w) writes(%y)
}

// CHECK:      task.composite @main_all of @main attributes {device = @test4, link_bytes = 256 : i64} {
// CHECK:        task.run @main_schedule reads(%x) writes(%y)
// CHECK-NEXT:   task.repeat 9 {
// CHECK-NEXT:     task.repeat 4 {
// CHECK-NEXT:       task.run @main_schedule reads(%x at 32, %h at 0 step [8, -4]) state(%y)
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// GENERIC:    "task.run"(%x, %h, %y) <{program = @main_schedule, offsets = array<i64: 32, 0, 0>, steps = array<i64: 0, 0, 8, -4, 0, 0>, operandSegmentSizes = array<i32: 2, 0, 1>}>
task.composite @main_all of @main attributes {device = @test4, link_bytes = 256 : i64} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xf32>
  %h = task.buffer {space = "arena", offset = 0 : i64} : tensor<64xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<8xf32>
  task.run @main_schedule reads(%x) writes(%y)
  task.repeat 9 {
    task.repeat 4 {
      task.run @main_schedule reads(%x at 32, %h at 0 step [8, -4]) state(%y)
    }
  }
}

// CHECK:      task.composite @main_until of @main attributes {device = @test4} {
// CHECK:        task.while %go {
// CHECK-NEXT:     task.run @main_schedule reads(%x) state(%go)
// CHECK-NEXT:   }
// GENERIC:    "task.while"(%go) ({
task.composite @main_until of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xf32>
  %go = task.buffer {space = "arena", offset = 0 : i64} : tensor<i1>
  task.while %go {
    task.run @main_schedule reads(%x) state(%go)
  }
}
