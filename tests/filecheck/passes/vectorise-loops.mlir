// RUN: irkit-opt %s -p vectorise-loops,canonicalize | filecheck %s
// RUN: irkit-opt %s -p vectorise-loops --check-semantics > /dev/null
// RUN: irkit-opt %s -p vectorise-loops --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// A row times a matrix, written to the turn's row: the product of two matrices.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[P:.*]] = graph.matmul %a, %b : (tensor<8x9xf64>, tensor<9x8xf64>) -> tensor<8x8xf64>
// CHECK-NEXT:    func.return %[[P]]
func.func @main(%a: tensor<8x9xf64>, %b: tensor<9x8xf64>, %y: tensor<8x8xf64>) -> tensor<8x8xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %y) -> (tensor<8x8xf64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 9] [1, 1] : tensor<8x9xf64> to tensor<1x9xf64>
    %p = graph.matmul %row, %b : (tensor<1x9xf64>, tensor<9x8xf64>) -> tensor<1x8xf64>
    %w = tensor.insert_slice %p into %x[%i, 0] [1, 8] [1, 1] : tensor<1x8xf64> into tensor<8x8xf64>
    scf.yield %w : tensor<8x8xf64>
  }
  func.return %r : tensor<8x8xf64>
}

// A column and then a row of each turn: an element has the row's value, but where a later turn wrote its column.
// CHECK-LABEL: func.func @row_and_column
// CHECK-NOT:     scf.for
// CHECK:         graph.compare %{{.*}}, %{{.*}} {predicate = "gt"}
// CHECK:         graph.where
// CHECK:         func.return
func.func @row_and_column(%a: tensor<4x4xf64>, %y: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %y) -> (tensor<4x4xf64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<4x4xf64> to tensor<1x4xf64>
    %column = graph.reshape %row {shape = array<i64: 4, 1>} : (tensor<1x4xf64>) -> tensor<4x1xf64>
    %v = tensor.insert_slice %column into %x[0, %i] [4, 1] [1, 1] : tensor<4x1xf64> into tensor<4x4xf64>
    %n = graph.neg %row : (tensor<1x4xf64>) -> tensor<1x4xf64>
    %w = tensor.insert_slice %n into %v[%i, 0] [1, 4] [1, 1] : tensor<1x4xf64> into tensor<4x4xf64>
    scf.yield %w : tensor<4x4xf64>
  }
  func.return %r : tensor<4x4xf64>
}

// The row before is what the turn before wrote.
// CHECK-LABEL: func.func @from_the_row_before
// CHECK:         scf.for
// MISSED:      a turn reads what another may have written
func.func @from_the_row_before(%y: tensor<8x4xf64>) -> tensor<8x4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r = scf.for %i = %c0 to %c7 step %c1 iter_args(%x = %y) -> (tensor<8x4xf64>) {
    %next = arith.addi %i, %c1 : index
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf64> to tensor<1x4xf64>
    %n = graph.neg %row : (tensor<1x4xf64>) -> tensor<1x4xf64>
    %w = tensor.insert_slice %n into %x[%next, 0] [1, 4] [1, 1] : tensor<1x4xf64> into tensor<8x4xf64>
    scf.yield %w : tensor<8x4xf64>
  }
  func.return %r : tensor<8x4xf64>
}

// A sum of what all turns add.
// CHECK-LABEL: func.func @sum
// CHECK:         %[[S:.*]] = graph.reduce %a {kind = "sum", axes = array<i64: 0>, keepdims = false}
// CHECK-NEXT:    %[[Y:.*]] = graph.add %y, %[[S]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @sum(%a: tensor<8x4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %y) -> (tensor<4xi64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<8x4xi64> to tensor<4xi64>
    %s = graph.add %x, %row : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    scf.yield %s : tensor<4xi64>
  }
  func.return %r : tensor<4xi64>
}

// Of floats each step is rounded.
// CHECK-LABEL: func.func @sum_of_floats
// CHECK:         scf.for
// MISSED:      a turn needs what the one before it computes
func.func @sum_of_floats(%a: tensor<8x4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %y) -> (tensor<4xf64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<8x4xf64> to tensor<4xf64>
    %s = graph.add %x, %row : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    scf.yield %s : tensor<4xf64>
  }
  func.return %r : tensor<4xf64>
}

// What a turn takes the sum from is not the sum: signs would change from turn to turn.
// CHECK-LABEL: func.func @taken_from
// CHECK:         scf.for
// MISSED:      a turn needs what the one before it computes
func.func @taken_from(%a: tensor<8x4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %y) -> (tensor<4xf64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<8x4xf64> to tensor<4xf64>
    %s = graph.sub %row, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    scf.yield %s : tensor<4xf64>
  }
  func.return %r : tensor<4xf64>
}

// The turn's own row, behind its store.
// CHECK-LABEL: func.func @own_row_written_before
// CHECK:         scf.for
// MISSED:      a turn reads what another may have written
func.func @own_row_written_before(%a: tensor<8x4xf64>, %y: tensor<8x4xf64>, %z: tensor<8x4xf64>) -> tensor<8x4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %y, %q = %z) -> (tensor<8x4xf64>, tensor<8x4xf64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<8x4xf64> to tensor<1x4xf64>
    %w = tensor.insert_slice %row into %x[%i, 0] [1, 4] [1, 1] : tensor<1x4xf64> into tensor<8x4xf64>
    %own = tensor.extract_slice %w[%i, 0] [1, 4] [1, 1] : tensor<8x4xf64> to tensor<1x4xf64>
    %n = graph.neg %own : (tensor<1x4xf64>) -> tensor<1x4xf64>
    %v = tensor.insert_slice %n into %q[%i, 0] [1, 4] [1, 1] : tensor<1x4xf64> into tensor<8x4xf64>
    scf.yield %w, %v : tensor<8x4xf64>, tensor<8x4xf64>
  }
  func.return %r#1 : tensor<8x4xf64>
}

// Windows that the outer loop moves as well: the inner one's turns are windows of what the outer one cuts out. The
// outer one stays, for the size of what its turns would compute.
// CHECK-LABEL: func.func @windows
// CHECK:         scf.for %[[I:.*]] = %c0 to
// CHECK-NEXT:      %[[CUT:.*]] = tensor.extract_slice %a[%[[I]], 0] [3, 100] [1, 1] : tensor<100x100xf64> to tensor<3x100xf64>
// CHECK-NEXT:      graph.gather %[[CUT]], %{{.*}} {axis = 1 : i64} : (tensor<3x100xf64>, tensor<98x3xi64>) -> tensor<3x98x3xf64>
// CHECK-NOT:       scf.for
// CHECK:           tensor.insert_slice %{{.*}} into %{{.*}}[%[[I]], 0] [1, 98] [1, 1]
// CHECK:           scf.yield
// MISSED:      what all turns compute has 86436 elements
func.func @windows(%a: tensor<100x100xf64>, %b: tensor<3x3xf64>, %y: tensor<98x98xf64>) -> tensor<98x98xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c98 = arith.constant 98 : index
  %r = scf.for %i = %c0 to %c98 step %c1 iter_args(%u = %y) -> (tensor<98x98xf64>) {
    %s = scf.for %j = %c0 to %c98 step %c1 iter_args(%v = %u) -> (tensor<98x98xf64>) {
      %window = tensor.extract_slice %a[%i, %j] [3, 3] [1, 1] : tensor<100x100xf64> to tensor<3x3xf64>
      %p = graph.mul %window, %b : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
      %t = graph.reduce %p {kind = "sum", axes = array<i64: 0, 1>, keepdims = true} : (tensor<3x3xf64>) -> tensor<1x1xf64>
      %w = tensor.insert_slice %t into %v[%i, %j] [1, 1] [1, 1] : tensor<1x1xf64> into tensor<98x98xf64>
      scf.yield %w : tensor<98x98xf64>
    }
    scf.yield %s : tensor<98x98xf64>
  }
  func.return %r : tensor<98x98xf64>
}

// A place that the inner loop computes of the outer one's variable alone is computed outside.
// CHECK-LABEL: func.func @computed_inside
// CHECK-NOT:     scf.for
// CHECK:         graph.slice %a {offsets = array<i64: 1, 0>, sizes = array<i64: 98, 100>, strides = array<i64: 1, 1>}
// CHECK:         tensor.insert_slice %{{.*}} into %y[1, 0] [98, 98] [1, 1]
// CHECK-NOT:     scf.for
func.func @computed_inside(%a: tensor<100x100xf64>, %y: tensor<100x98xf64>) -> tensor<100x98xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c98 = arith.constant 98 : index
  %r = scf.for %i = %c0 to %c98 step %c1 iter_args(%u = %y) -> (tensor<100x98xf64>) {
    %s = scf.for %j = %c0 to %c98 step %c1 iter_args(%v = %u) -> (tensor<100x98xf64>) {
      %below = arith.addi %i, %c1 : index
      %n = tensor.extract_slice %a[%below, %j] [1, 1] [1, 1] : tensor<100x100xf64> to tensor<1x1xf64>
      %w = tensor.insert_slice %n into %v[%below, %j] [1, 1] [1, 1] : tensor<1x1xf64> into tensor<100x98xf64>
      scf.yield %w : tensor<100x98xf64>
    }
    scf.yield %s : tensor<100x98xf64>
  }
  func.return %r : tensor<100x98xf64>
}
