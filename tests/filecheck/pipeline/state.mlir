// RUN: irkit-opt %s --to schedule --device test4 --check-semantics | filecheck %s
// RUN: irkit-opt %s --to schedule --device cpu2 -t numba | filecheck %s --check-prefix NUMBA
// RUN: irkit-run %s --level=schedule --device=test4 --seed=1 | filecheck %s --check-prefix VALUE
// RUN: irkit-run %s --device=cpu2 --seed=1 | filecheck %s --check-prefix VALUE

// A step of gradient descent: the parameters and a counter last from run to run, and are updated in place.
// CHECK-LABEL: task.program @main_schedule of @main
// CHECK:         %n = task.buffer {space = "state", port = 0 : i64} : tensor<1xi64>
// CHECK:         %w = task.buffer {space = "state", port = 1 : i64} : tensor<8x3xf32>
// CHECK-DAG:     [[read:%.*]] = task.append @gemm_0 {{.*}} reads(%x, %w) writes(%y)
// CHECK-DAG:     task.append @map_0 {{.*}} reads(%n) writes(%n)
// CHECK:         task.append @map_1 {{.*}} wait([[read]]) reads(%w) writes(%w)

// NUMBA:       inputs=(
// NUMBA-NEXT:    Port('x', 'float32', (4, 8)),
// NUMBA:       outputs=(
// NUMBA-NEXT:    Port('y', 'float32', (4, 3)),
// NUMBA:       states=(
// NUMBA-NEXT:    Port('n', 'int64', (1,)),
// NUMBA-NEXT:    Port('w', 'float32', (8, 3)),
// What is state is given to a run and taken from it, as every other input and output.
// VALUE:       n1: int64[1]
// VALUE-NEXT:  [1]
// VALUE-NEXT:  y: float32[4, 3]
// VALUE-NEXT:  {{\[\[}} 0.870079{{[0-9]* *}}0.302656
// VALUE:       w1: float32[8, 3]
func.func @main(%n: tensor<1xi64>, %x: tensor<4x8xf32>, %w: tensor<8x3xf32>) -> (tensor<1xi64>, tensor<4x3xf32>, tensor<8x3xf32>)
    attributes {irkit.inputs = ["n", "x", "w"], irkit.outputs = ["n1", "y", "w1"], irkit.state = array<i64: 0, 0, 2, 2>} {
  %one = arith.constant dense<1> : tensor<1xi64>
  %n1 = graph.add %n, %one : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %y = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %rate = arith.constant dense<0.1> : tensor<1xf32>
  %g = graph.mul %w, %rate : (tensor<8x3xf32>, tensor<1xf32>) -> tensor<8x3xf32>
  %w1 = graph.sub %w, %g : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  func.return %n1, %y, %w1 : tensor<1xi64>, tensor<4x3xf32>, tensor<8x3xf32>
}
