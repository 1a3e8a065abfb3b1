// RUN: irkit-opt %s -p hoist-from-loops,canonicalize | filecheck %s
// RUN: irkit-opt %s -p hoist-from-loops --check-semantics > /dev/null
// RUN: irkit-opt %s -p hoist-from-loops --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-run %s --level=schedule --device=cpu2 --seed=3 > /dev/null

// The input half of a recurrence is one product, read row by row, from the last to the first; half of a
// matrix is cut out once; the other half of the step waits for the state.
// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]] = graph.gemm %a, %w, %b
// CHECK-SAME:      (tensor<9x4xf64>, tensor<8x4xf64>, tensor<8xf64>) -> tensor<9x8xf64>
// CHECK:         %[[U:.*]] = graph.slice %u
// CHECK:         scf.for
// CHECK:           tensor.extract_slice %[[P]][%{{.*}}, 0] [1, 8] [1, 1] : tensor<9x8xf64> to tensor<1x8xf64>
// CHECK:           graph.matmul %h, %[[U]]
// CHECK-NOT:       graph.gemm
// CHECK:           scf.yield
func.func @main(%a: tensor<9x4xf64>, %w: tensor<8x4xf64>, %b: tensor<8xf64>, %u: tensor<16x8xf64>, %s: tensor<1x8xf64>) -> tensor<1x8xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %s) -> (tensor<1x8xf64>) {
    %at = arith.subi %c8, %i : index
    %x = tensor.extract_slice %a[%at, 0] [1, 4] [1, 1] : tensor<9x4xf64> to tensor<1x4xf64>
    %p = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64} : (tensor<1x4xf64>, tensor<8x4xf64>, tensor<8xf64>) -> tensor<1x8xf64>
    %half = graph.slice %u {offsets = array<i64: 8, 0>, sizes = array<i64: 8, 8>, strides = array<i64: 1, 1>} : (tensor<16x8xf64>) -> tensor<8x8xf64>
    %q = graph.matmul %h, %half : (tensor<1x8xf64>, tensor<8x8xf64>) -> tensor<1x8xf64>
    %t = graph.add %p, %q : (tensor<1x8xf64>, tensor<1x8xf64>) -> tensor<1x8xf64>
    %y = graph.tanh %t : (tensor<1x8xf64>) -> tensor<1x8xf64>
    scf.yield %y : tensor<1x8xf64>
  }
  func.return %r : tensor<1x8xf64>
}

// A matrix times a row as a column: the rows times the matrix, transposed.
// CHECK-LABEL: func.func @columns
// CHECK:         %[[P:.*]] = graph.gemm %a, %w {trans_a = false, trans_b = true,
// CHECK-SAME:      (tensor<9x4xf64>, tensor<8x4xf64>) -> tensor<9x8xf64>
// CHECK:           tensor.extract_slice %[[P]][%i, 0] [1, 8] [1, 1]
// CHECK-NOT:       graph.matmul
// CHECK:           scf.yield
func.func @columns(%a: tensor<9x4xf64>, %w: tensor<8x4xf64>, %s: tensor<8x1xf64>) -> tensor<8x1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %s) -> (tensor<8x1xf64>) {
    %x = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<9x4xf64> to tensor<1x4xf64>
    %c = graph.reshape %x {shape = array<i64: 4, 1>} : (tensor<1x4xf64>) -> tensor<4x1xf64>
    %p = graph.matmul %w, %c : (tensor<8x4xf64>, tensor<4x1xf64>) -> tensor<8x1xf64>
    %t = graph.add %p, %h : (tensor<8x1xf64>, tensor<8x1xf64>) -> tensor<8x1xf64>
    scf.yield %t : tensor<8x1xf64>
  }
  func.return %r : tensor<8x1xf64>
}

// Few rows of an array, columns of it, and what the loop itself makes: each turn has its own product. What has
// more elements than it is made of stays too.
// CHECK-LABEL: func.func @stays
// CHECK:         scf.for
// CHECK:           graph.expand
// CHECK:           graph.matmul
// CHECK:           graph.matmul
// CHECK:           graph.matmul
// CHECK:           scf.yield
// MISSED-DAG:    most of what it is a part of is in no product
// MISSED-DAG:    the part has not all of each row
// MISSED-DAG:    its factor is no part of an array
// MISSED-DAG:    it has more elements than what it reads
func.func @stays(%a: tensor<99x4xf64>, %b: tensor<9x8xf64>, %w: tensor<4x4xf64>, %s: tensor<1x4xf64>) -> tensor<1x4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %s) -> (tensor<1x4xf64>) {
    %x = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<99x4xf64> to tensor<1x4xf64>
    %y = tensor.extract_slice %b[%i, 4] [1, 4] [1, 1] : tensor<9x8xf64> to tensor<1x4xf64>
    %wide = graph.expand %s {shape = array<i64: 2, 4>} : (tensor<1x4xf64>) -> tensor<2x4xf64>
    %p = graph.matmul %x, %w : (tensor<1x4xf64>, tensor<4x4xf64>) -> tensor<1x4xf64>
    %q = graph.matmul %y, %w : (tensor<1x4xf64>, tensor<4x4xf64>) -> tensor<1x4xf64>
    %t = graph.add %p, %q : (tensor<1x4xf64>, tensor<1x4xf64>) -> tensor<1x4xf64>
    %v = graph.matmul %h, %w : (tensor<1x4xf64>, tensor<4x4xf64>) -> tensor<1x4xf64>
    %n = graph.mul %wide, %v : (tensor<2x4xf64>, tensor<1x4xf64>) -> tensor<2x4xf64>
    %m = graph.reduce %n {kind = "sum", axes = array<i64: 0>, keepdims = true} : (tensor<2x4xf64>) -> tensor<1x4xf64>
    %z = graph.add %t, %m : (tensor<1x4xf64>, tensor<1x4xf64>) -> tensor<1x4xf64>
    scf.yield %z : tensor<1x4xf64>
  }
  func.return %r : tensor<1x4xf64>
}
