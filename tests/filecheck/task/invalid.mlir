// What each task op refuses, and in which words.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'task.vdevice' expects veus of 1 or more, got 0}}
task.vdevice @none {kind = "test", veus = 0 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.roperator' @f expects to yield tensor<5xf32>, got tensor<4xf32>}}
task.roperator @f(%a : tensor<4xf32>) -> tensor<5xf32> {
  task.yield %a : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.roperator' expects a grid of 1 or more, got array<i64: 2, 0>}}
task.roperator @f(%a : tensor<4x4xf32>) -> tensor<4x4xf32> attributes {grid = array<i64: 2, 0>} {
  task.yield %a : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{'task.program' expects rows first <= last, got [4:3]}}
task.program @main_schedule of @main rows [4:3] attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<?xf32>
}

// -----

// expected-error@+1 {{'task.roperator' expects batches of rising numbers of rows, got [32, 1]}}
task.roperator @f(%a : tensor<?xf32>) -> tensor<?xf32> attributes {batches = array<i64: 32, 1>, costs = array<f64: 1.0, 2.0>} {
  task.yield %a : tensor<?xf32>
}

// -----

// expected-error@+1 {{'task.roperator' expects a cost for each of 2 batches, got 1}}
task.roperator @f(%a : tensor<?xf32>) -> tensor<?xf32> attributes {batches = array<i64: 1, 32>, costs = array<f64: 1.0>} {
  task.yield %a : tensor<?xf32>
}

// -----

// expected-error@+1 {{'task.roperator' expects numbers of rows in batches, of i64, and a cost for each in costs, of f64}}
task.roperator @f(%a : tensor<?xf32>) -> tensor<?xf32> attributes {batches = array<i64: 1, 32>} {
  task.yield %a : tensor<?xf32>
}

// -----

// expected-error@+1 {{'task.roperator' expects one alternative or more, got none}}
task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> attributes {alternatives = []} {
  task.yield %a : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.roperator' with alternatives has made no choice, but has 'grid'}}
task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> attributes {grid = array<i64: 2>, alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {}, cost = 100.0 : f64}>]} {
  task.yield %a : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.alternative' expects 'cost'}}
task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {}}>]} {
  task.yield %a : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.alternative' has no 'residents'}}
task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {}, cost = 1.0 : f64, residents = array<i64: 0>}>]} {
  task.yield %a : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.alternative' expects another 'rkernel' than 7 : i64}}
task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> attributes {alternatives = [
    #task.alternative<{rkernel = 7, grid = array<i64: 4>, parameters = {}, cost = 1.0 : f64}>]} {
  task.yield %a : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.alternative' expects a grid of 1 or more, got array<i64: 4, 0>}}
task.roperator @f(%a : tensor<4x4xf32>) -> tensor<4x4xf32> attributes {alternatives = [
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4, 0>, parameters = {}, cost = 1.0 : f64}>]} {
  task.yield %a : tensor<4x4xf32>
}

// -----

func.func @launch(%x: tensor<4xf32>) {
  // expected-error@+1 {{'task.launch' names @absent, which is no task.roperator}}
  %0 = task.launch @absent(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> {
  task.yield %a : tensor<4xf32>
}
func.func @launch(%x: tensor<5xf32>) {
  // expected-error@+1 {{'task.launch' @f expects (tensor<4xf32>) -> tensor<4xf32>, got (tensor<5xf32>) -> tensor<4xf32>}}
  %0 = task.launch @f(%x) : (tensor<5xf32>) -> tensor<4xf32>
  func.return
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{'task.buffer' expects a space among arena, rows, input, output, constant, state, got 'heap'}}
  %x = task.buffer {space = "heap"} : tensor<4xf32>
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{'task.buffer' in space 'constant' expects a source, got none}}
  %x = task.buffer {space = "constant"} : tensor<4xf32>
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{'task.buffer' in space 'output' expects a port, got none}}
  %x = task.buffer {space = "output"} : tensor<4xf32>
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{'task.buffer' in space 'input' has no offset}}
  %x = task.buffer {space = "input", port = 0 : i64, offset = 4 : i64} : tensor<4xf32>
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{'task.buffer' in space 'arena' has no port}}
  %x = task.buffer {space = "arena", port = 0 : i64} : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.vdevice' expects a kind among cpu, cuda, test, got 'tpu'}}
task.vdevice @d {kind = "tpu", veus = 4 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' expects rate 'byte' above 0, got 0.0}}
task.vdevice @d {kind = "cpu", veus = 4 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {byte = 0.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' has rate 'flop'; there are start, row, tile,}}
task.vdevice @d {kind = "cpu", veus = 4 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64, flop = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' expects rate 'byte' to be an f64, got 1 : i64}}
task.vdevice @d {kind = "cpu", veus = 4 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {byte = 1 : i64}}

// -----

// expected-error@+1 {{'task.vdevice' has no rate 'byte'}}
task.vdevice @d {kind = "cpu", veus = 4 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {fma = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' of kind 'cuda', and no other, has multiprocessors}}
task.vdevice @d {kind = "cuda", veus = 4 : i64, threads = 256 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' of kind 'cuda', and no other, has arch}}
task.vdevice @d {kind = "cuda", veus = 4 : i64, threads = 256 : i64, shared_bytes = 0 : i64, multiprocessors = 4 : i64, l2_bytes = 1024 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' expects an arch among sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110, sm_120, sm_121, got 'sm_75'}}
task.vdevice @d {kind = "cuda", veus = 4 : i64, threads = 256 : i64, shared_bytes = 0 : i64, multiprocessors = 4 : i64, l2_bytes = 1024 : i64, arch = "sm_75", wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' of kind 'cuda', and no other, has arch}}
task.vdevice @d {kind = "cpu", veus = 4 : i64, threads = 1 : i64, shared_bytes = 0 : i64, arch = "sm_80", wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}

// -----

task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> {
  task.yield %a : tensor<4xf32>
}
task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{'task.append' expects wave of 0 or more, got -1}}
  %t = task.append @f to [0:1] wave -1 reads(%x) writes(%y)
}

// -----

task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> {
  task.yield %a : tensor<4xf32>
}
task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{'task.append' expects vEUs first <= last, got [3:1]}}
  %t = task.append @f to [3:1] wave 0 reads(%x) writes(%y)
}

// -----

task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> {
  task.yield %a : tensor<4xf32>
}
task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf64>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{'task.append' @f expects (tensor<4xf32>) -> tensor<4xf32>, got (tensor<4xf64>) -> tensor<4xf32>}}
  %t = task.append @f to [0:0] wave 0 reads(%x) writes(%y)
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{use of undefined value '%x'}}
  %t = task.append @f to [0:0] wave 0 reads(%x) writes(%x)
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{'task.buffer' in space 'state' expects a port, got none}}
  %x = task.buffer {space = "state"} : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.roperator' expects an operand and a result of one type in in_place, got 0 and 0}}
task.roperator @f(%a : tensor<4xf32>, %b : tensor<2xf32>) -> tensor<2xf32> attributes {in_place = array<i64: 1, 0, 0, 0>} {
  task.yield %b : tensor<2xf32>
}

// -----

// expected-error@+1 {{'task.roperator' expects pairs in in_place, got an odd number}}
task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> attributes {in_place = array<i64: 0>} {
  task.yield %a : tensor<4xf32>
}

// -----

task.composite @main_all of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xf32>
  task.repeat 9 {
    // expected-error@+1 {{'task.run' expects 1 steps of each of 1 operands, got 2 in all}}
    task.run @main_schedule reads(%x at 0 step [8, 8])
  }
}

// -----

task.composite @main_all of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xf32>
  // expected-error@+1 {{'task.repeat' expects 1 iteration or more}}
  task.repeat 0 {
    task.run @main_schedule reads(%x)
  }
}

// -----

task.composite @main_all of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<16xi1>
  // expected-error@+1 {{'task.while' expects a buffer of one boolean, tensor<i1>, got tensor<16xi1>}}
  task.while %x {
    task.run @main_schedule reads(%x)
  }
}

// -----

// expected-error@+1 {{'task.vdevice' expects shared_bytes of 0 or more, got -1}}
task.vdevice @d {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = -1 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}

// -----

// expected-error@+1 {{'task.vdevice' expects wait_ns of 0 or more, got -1.0}}
task.vdevice @d {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = -1.0 : f64, rates = {byte = 1.0 : f64}}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  // expected-error@+1 {{'task.buffer' expects offset of 0 or more, got -8}}
  %x = task.buffer {space = "arena", offset = -8 : i64} : tensor<4xf32>
}

// -----

task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{'task.view' expects offset of 0 or more, got -8}}
  %v = task.view %x {offset = -8 : i64} : tensor<4xf32> -> tensor<2xf32>
}

// -----

// expected-error@+1 {{'task.program' expects arena_bytes of 0 or more, got -8}}
task.program @main_schedule of @main attributes {device = @test4, arena_bytes = -8 : i64} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
}

// -----

// expected-error@+1 {{'task.composite' expects link_bytes of 0 or more, got -8}}
task.composite @main_schedule of @main attributes {device = @test4, link_bytes = -8 : i64} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
}

// -----

task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> {
  task.yield %a : tensor<4xf32>
}
task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{'task.append' expects numbers of its 1 read operands as residents, got 1}}
  %t = task.append @f to [0:1] wave 0 reads(%x) writes(%y) resident [1 at 0]
}

// -----

task.roperator @f(%a : tensor<4xf32>) -> tensor<4xf32> {
  task.yield %a : tensor<4xf32>
}
task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
  %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{'task.append' expects numbers of its 1 read operands as carried, got 3}}
  %t = task.append @f to [0:1] wave 0 reads(%x) writes(%y) carried [3]
}
