// RUN: irkit-opt %s -p verify-schedule --split-input-file --verify-diagnostics

// The old value is read after the new one has taken its place.
// expected-error@unknown {{pass 'verify-schedule' failed: schedule violates rule 'meaning': append 1 ('exp#1') computes what no launch of @main does}}
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @exp(%a : tensor<8xf32>) -> tensor<8xf32> attributes {grid = array<i64: 4>, rkernel = "map.rows", parameters = {}, in_place = array<i64: 0, 0>} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
func.func @main(%s: tensor<8xf32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {irkit.state = array<i64: 0, 0>} {
  %0 = task.launch @exp(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = task.launch @exp(%s) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 0 : i64, row_bytes = 0 : i64} {
  %s = task.buffer {space = "state", port = 0 : i64} : tensor<8xf32>
  %x = task.buffer {space = "input", port = 1 : i64} : tensor<8xf32>
  %y = task.buffer {space = "output", port = 1 : i64} : tensor<8xf32>
  %t0 = task.append @exp to [0:3] wave 0 reads(%x) writes(%s)
  %t1 = task.append @exp to [0:3] wave 1 wait(%t0) reads(%s) writes(%y)
}

// -----

// The new value never comes to where the next run looks for it.
// expected-error@unknown {{pass 'verify-schedule' failed: schedule violates rule 'meaning': 's' does not hold output 0 of @main at the end}}
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @exp(%a : tensor<8xf32>) -> tensor<8xf32> attributes {grid = array<i64: 4>, rkernel = "map.rows", parameters = {}, in_place = array<i64: 0, 0>} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
func.func @main(%s: tensor<8xf32>) -> tensor<8xf32> attributes {irkit.state = array<i64: 0, 0>} {
  %0 = task.launch @exp(%s) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 256 : i64, row_bytes = 0 : i64} {
  %s = task.buffer {space = "state", port = 0 : i64} : tensor<8xf32>
  %a = task.buffer {space = "arena", offset = 0 : i64} : tensor<8xf32>
  %t0 = task.append @exp to [0:3] wave 0 reads(%s) writes(%a)
}

// -----

// The rKernel would read an element that it has written: a transposition is not in place.
// expected-error@unknown {{pass 'verify-schedule' failed: @turn with rKernel 'map.rows': operand 0 is read elsewhere than where result 0 is written}}
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @turn(%a : tensor<4x4xf32>) -> tensor<4x4xf32> attributes {grid = array<i64: 1, 1>, rkernel = "map.rows", parameters = {}, in_place = array<i64: 0, 0>} {
  %e = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<4x4xf32>
  task.yield %y : tensor<4x4xf32>
}
func.func @main(%s: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {irkit.state = array<i64: 0, 0>} {
  %0 = task.launch @turn(%s) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %0 : tensor<4x4xf32>
}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 0 : i64, row_bytes = 0 : i64} {
  %s = task.buffer {space = "state", port = 0 : i64} : tensor<4x4xf32>
  %t0 = task.append @turn to [0:0] wave 0 reads(%s) writes(%s)
}

// -----

// And nothing is in place that does not say so.
// expected-error@unknown {{pass 'verify-schedule' failed: schedule violates rule 'alias': 'exp#0' writes to 's' what it reads as operand 0}}
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @exp(%a : tensor<8xf32>) -> tensor<8xf32> attributes {grid = array<i64: 4>, rkernel = "map.rows", parameters = {}} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
func.func @main(%s: tensor<8xf32>) -> tensor<8xf32> attributes {irkit.state = array<i64: 0, 0>} {
  %0 = task.launch @exp(%s) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 0 : i64, row_bytes = 0 : i64} {
  %s = task.buffer {space = "state", port = 0 : i64} : tensor<8xf32>
  %t0 = task.append @exp to [0:3] wave 0 reads(%s) writes(%s)
}
