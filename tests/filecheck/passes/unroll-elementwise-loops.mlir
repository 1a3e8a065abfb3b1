// RUN: irkit-opt %s -p unroll-elementwise-loops | filecheck %s
// RUN: irkit-opt %s -p unroll-elementwise-loops --check-semantics > /dev/null
// RUN: irkit-opt %s -p unroll-elementwise-loops,unroll-elementwise-loops | filecheck %s
// RUN: irkit-opt %s -p unroll-elementwise-loops --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// MISSED:      it has few turns, or turns of many ops
// MISSED:      'graph.slice' is not elementwise
// MISSED:      it hands on arrays of several shapes
// MISSED:      it has few turns, or turns of many ops

// Thirteen functions count as many ops: four turns at once three times, and one behind them.
// CHECK-LABEL: func.func @alike
// CHECK-DAG:     %[[FIRST:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[END:.*]] = arith.constant 12 : index
// CHECK-DAG:     %[[STEP:.*]] = arith.constant 4 : index
// CHECK:         %[[R:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %[[STEP]] iter_args(%x = %y)
// CHECK-COUNT-4:   graph.exp
// CHECK:           scf.yield
// CHECK:         %[[Z:.*]] = graph.exp %[[R]]
// CHECK-NEXT:    func.return %[[Z]]
func.func @alike(%y: tensor<9xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c13 = arith.constant 13 : index
  %r = scf.for %i = %c0 to %c13 step %c1 iter_args(%x = %y) -> (tensor<9xf64>) {
    %z = graph.exp %x : (tensor<9xf64>) -> tensor<9xf64>
    scf.yield %z : tensor<9xf64>
  }
  func.return %r : tensor<9xf64>
}

// Turns that ask for their number, and hand on one number and two arrays that change places.
// CHECK-LABEL: func.func @main
// CHECK:         scf.for %i = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%a = %x, %b = %y, %s = %k)
// CHECK-NEXT:      %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT:      %[[I0:.*]] = arith.addi %i, %[[C0]]
// CHECK-NEXT:      arith.index_cast %[[I0]]
// CHECK:           %[[C2:.*]] = arith.constant 2 : index
// CHECK-NEXT:      %[[I2:.*]] = arith.addi %i, %[[C2]]
// CHECK-NOT:       arith.constant 3 : index
// CHECK:           scf.yield
func.func @main(%x: tensor<4x3xf64>, %y: tensor<4x3xf64>, %k: tensor<f64>) -> (tensor<4x3xf64>, tensor<4x3xf64>) {
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c40 = arith.constant 40 : index
  %r, %q, %t = scf.for %i = %c3 to %c40 step %c2 iter_args(%a = %x, %b = %y, %s = %k) -> (tensor<4x3xf64>, tensor<4x3xf64>, tensor<f64>) {
    %n = arith.index_cast %i : index to i64
    %m = tensor.from_elements %n : tensor<i64>
    %f = graph.cast %m {to = f64} : (tensor<i64>) -> tensor<f64>
    %c = graph.sub %a, %f : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x3xf64>
    %d = graph.mul %s, %f : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %b, %c, %d : tensor<4x3xf64>, tensor<4x3xf64>, tensor<f64>
  }
  func.return %r, %q : tensor<4x3xf64>, tensor<4x3xf64>
}

// CHECK-LABEL: func.func @moves
// CHECK-COUNT-1: graph.slice
// CHECK-NOT:     graph.slice
// CHECK:         func.return
func.func @moves(%y: tensor<9xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c13 = arith.constant 13 : index
  %r = scf.for %i = %c0 to %c13 step %c1 iter_args(%x = %y) -> (tensor<9xf64>) {
    %z = graph.slice %x {offsets = array<i64: 8>, sizes = array<i64: 9>, strides = array<i64: -1>} : (tensor<9xf64>) -> tensor<9xf64>
    scf.yield %z : tensor<9xf64>
  }
  func.return %r : tensor<9xf64>
}

// A row is added to a matrix: its elements belong to several.
func.func @rows(%y: tensor<4x3xf64>, %k: tensor<3xf64>) -> tensor<4x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c13 = arith.constant 13 : index
  %r, %q = scf.for %i = %c0 to %c13 step %c1 iter_args(%x = %y, %s = %k) -> (tensor<4x3xf64>, tensor<3xf64>) {
    %z = graph.add %x, %s : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4x3xf64>
    %t = graph.neg %s : (tensor<3xf64>) -> tensor<3xf64>
    scf.yield %z, %t : tensor<4x3xf64>, tensor<3xf64>
  }
  func.return %r : tensor<4x3xf64>
}

func.func @long(%y: tensor<9xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c13 = arith.constant 13 : index
  %r = scf.for %i = %c0 to %c13 step %c1 iter_args(%x = %y) -> (tensor<9xf64>) {
    %a = graph.exp %x : (tensor<9xf64>) -> tensor<9xf64>
    %b = graph.sin %a : (tensor<9xf64>) -> tensor<9xf64>
    %c = graph.tanh %b : (tensor<9xf64>) -> tensor<9xf64>
    scf.yield %c : tensor<9xf64>
  }
  func.return %r : tensor<9xf64>
}
