// RUN: not irkit-opt %s -p verify-schedule 2>&1 | filecheck %s

// vEU 2 waits for another append than the one that it reads.
// CHECK: error: pass 'verify-schedule' failed: schedule violates rule 'race': read after write on 'b': append 1 ('exp#1') rTask 0 on vEU 0 does not happen before append 2 ('exp#2') rTask 0 on vEU 2
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
  func.return %2 : tensor<8xf32>
}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 512 : i64, row_bytes = 0 : i64} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<8xf32>
  %a = task.buffer {space = "arena", offset = 0 : i64} : tensor<8xf32>
  %b = task.buffer {space = "arena", offset = 256 : i64} : tensor<8xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<8xf32>
  %t0 = task.append @exp to [0:3] wave 0 reads(%x) writes(%a)
  %t1 = task.append @exp to [0:1] wave 1 wait(%t0) reads(%a) writes(%b)
  %t2 = task.append @exp to [2:3] wave 2 wait(%t0) reads(%b) writes(%y)
}
