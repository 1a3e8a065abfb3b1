// RUN: irkit-opt %s --to=schedule --device=cpu2 --check-semantics | filecheck %s
// RUN: irkit-opt %s --to=schedule --device=h200 | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -t 'numba{target=cpu}' --device=cpu2 | filecheck %s --check-prefix=CPU
// RUN: irkit-run %s --level=schedule --device=cpu2 --seed=3 > /dev/null

// What a loop hands on is the function's state: it lies in one buffer from run to run, in the loop too. The other
// pair is read in each turn, and written by the last run.
// CHECK:      task.composite @main_schedule of @main
// CHECK-NEXT:   %w = task.buffer {space = "state", port = 1 : i64} : tensor<4xf64>
// CHECK-NEXT:   %x = task.buffer {space = "input", port = 1 : i64} : tensor<9x4xf64>
// CHECK-NEXT:   %h = task.buffer {space = "state", port = 0 : i64} : tensor<1x4xf64>
// CHECK-NEXT:   %[[Y:.*]] = task.buffer {space = "output", port = 0 : i64} : tensor<1x4xf64>
// CHECK:        task.repeat 9 {
// CHECK-NEXT:     task.run @main_part{{[0-9]+}}_schedule reads(%w, %x at 0 step [32]) state(%h)
// CHECK-NEXT:   }
// CHECK-NEXT:   task.run @main_part{{[0-9]+}}_schedule reads(%h) writes(%[[Y]]) state(%w)

// GPU:        %h = task.buffer {space = "state", port = 0 : i64}
// GPU:          task.run @main_part{{[0-9]+}}_schedule reads({{.*}}) state(%h)

// CPU:        states=(
// CPU-NEXT:       Port('h', 'float64', (1, 4)),
// CPU-NEXT:       Port('w', 'float64', (4,)),
// CPU:        moving=(Moving(3, 0, (32,)), ),
func.func @main(%w: tensor<4xf64>, %x: tensor<9x4xf64>, %h: tensor<1x4xf64>) -> (tensor<1x4xf64>, tensor<4xf64>, tensor<1x4xf64>) attributes {
  irkit.state = array<i64: 2, 2, 0, 1>, irkit.inputs = ["w", "x", "h"], irkit.outputs = ["y", "wn", "hn"]
} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %h) -> (tensor<1x4xf64>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<9x4xf64> to tensor<1x4xf64>
    %p = graph.mul %s, %w : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<1x4xf64>
    %q = graph.add %p, %row : (tensor<1x4xf64>, tensor<1x4xf64>) -> tensor<1x4xf64>
    %t = graph.tanh %q : (tensor<1x4xf64>) -> tensor<1x4xf64>
    scf.yield %t : tensor<1x4xf64>
  }
  %y = graph.mul %r, %w : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<1x4xf64>
  %flat = graph.reshape %y {shape = array<i64: 4>} : (tensor<1x4xf64>) -> tensor<4xf64>
  %n = graph.sub %w, %flat : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  func.return %y, %n, %r : tensor<1x4xf64>, tensor<4xf64>, tensor<1x4xf64>
}
