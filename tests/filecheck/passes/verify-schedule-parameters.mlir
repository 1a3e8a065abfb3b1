// RUN: not irkit-opt %s -p verify-schedule 2>&1 | filecheck %s

// Scratch follows from the parameters, and these have limits.
// CHECK: error: pass 'verify-schedule' failed: @mm with rKernel 'product.blocked': parameter NC cannot be 4096
task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @mm(%a : tensor<8x16xf32>, %b : tensor<16x4xf32>, %c : tensor<8x4xf32>) -> tensor<8x4xf32> attributes {rkernel = "product.blocked", parameters = {ACROSS = 1 : i64, LANES = 4 : i64, NC = 4096 : i64, TILE = 4 : i64}, grid = array<i64: 1, 1>, cost = 100.0 : f64} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%c : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  task.yield %y : tensor<8x4xf32>
}
func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = task.launch @mm(%a, %b, %c) : (tensor<8x16xf32>, tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %0 : tensor<8x4xf32>
}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 0 : i64, row_bytes = 0 : i64} {
  %a = task.buffer {space = "input", port = 0 : i64} : tensor<8x16xf32>
  %b = task.buffer {space = "input", port = 1 : i64} : tensor<16x4xf32>
  %c = task.buffer {space = "input", port = 2 : i64} : tensor<8x4xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<8x4xf32>
  %t0 = task.append @mm to [0:0] wave 0 reads(%a, %b, %c) writes(%y)
}
