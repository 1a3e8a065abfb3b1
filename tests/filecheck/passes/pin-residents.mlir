// A weight that a vEU reads in two appends stays in its shared memory; an input does not, nor a weight
// that is read once.
// RUN: irkit-opt %s -p pin-residents --split-input-file | filecheck %s
// RUN: irkit-opt %s -p pin-residents,pin-residents --split-input-file | filecheck %s

task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}
task.roperator @add(%a : tensor<8xf32>, %b : tensor<8xf32>) -> tensor<8xf32>
    attributes {grid = array<i64: 2>, rkernel = "map.rows"} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  task.yield %y : tensor<8xf32>
}
// CHECK:      [[t0:%.*]] = task.append @add to [0:1] wave 0 reads(%x, %w) writes(%h) resident [1 at 0]
// CHECK-NEXT: [[t1:%.*]] = task.append @add to [0:1] wave 1 wait([[t0]]) reads(%h, %w) writes(%y) resident [1 at 0]
// CHECK-NEXT: {{.*}} = task.append @add to [2:3] wave 0 reads(%x, %v) writes(%z){{$}}
task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<8xf32>
  %w = task.buffer {space = "constant", source = "w"} : tensor<8xf32>
  %v = task.buffer {space = "constant", source = "v"} : tensor<8xf32>
  %h = task.buffer {space = "arena"} : tensor<8xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<8xf32>
  %z = task.buffer {space = "output", port = 1 : i64} : tensor<8xf32>
  %t0 = task.append @add to [0:1] wave 0 reads(%x, %w) writes(%h)
  %t1 = task.append @add to [0:1] wave 1 wait(%t0) reads(%h, %w) writes(%y)
  %t2 = task.append @add to [2:3] wave 0 reads(%x, %v) writes(%z)
}
