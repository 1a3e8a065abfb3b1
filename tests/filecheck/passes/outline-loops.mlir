// RUN: irkit-opt %s -p outline-loops | filecheck %s
// RUN: irkit-opt %s -p outline-loops --check-semantics > /dev/null

// What stands in the loop is one function, what it starts from is copied by another. The slice moves in @main.
// CHECK-LABEL: func.func @main_part0(%row: tensor<3xf64>, %x: tensor<3xf64>) -> tensor<3xf64> attributes {irkit.state = array<i64: 1, 0>} {
// CHECK-NEXT:    %y = graph.add %row, %x : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT:    func.return %y : tensor<3xf64>
// CHECK:       func.func @main_part1(%w: tensor<3xf64>) -> tensor<3xf64> {
// CHECK-NEXT:    func.return %w : tensor<3xf64>
// CHECK:       func.func @main(%a: tensor<9x3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
// CHECK:         %[[COPY:.*]] = func.call @main_part1(%w) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT:    %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %[[COPY]]) -> (tensor<3xf64>) {
// CHECK-NEXT:      %row = tensor.extract_slice %a[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<3xf64>
// CHECK-NEXT:      %y = func.call @main_part0(%row, %x) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT:      scf.yield %y : tensor<3xf64>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %r : tensor<3xf64>
func.func @main(%a: tensor<9x3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %w) -> (tensor<3xf64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<3xf64>
    %y = graph.add %row, %x : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    scf.yield %y : tensor<3xf64>
  }
  func.return %r : tensor<3xf64>
}

// A short loop is unrolled: its slices are at fixed places, its variable is a number.
// CHECK-LABEL: func.func @short
// CHECK-NOT:     scf.for
// CHECK:         graph.slice %a {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 3>
// CHECK:         arith.constant dense<1> : tensor<i64>
// CHECK:         graph.slice %a {offsets = array<i64: 2, 0>, sizes = array<i64: 1, 3>
// CHECK:         arith.constant dense<2> : tensor<i64>
func.func @short(%a: tensor<9x3xf64>) -> tensor<i64> {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0> : tensor<i64>
  %r = scf.for %i = %c1 to %c3 step %c1 iter_args(%x = %zero) -> (tensor<i64>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<3xf64>
    %n = arith.index_cast %i : index to i64
    %t = tensor.from_elements %n : tensor<i64>
    %y = graph.add %x, %t : (tensor<i64>, tensor<i64>) -> tensor<i64>
    scf.yield %y : tensor<i64>
  }
  func.return %r : tensor<i64>
}

// In a longer one the variable is carried as a number; two values that change places do so in the function.
// CHECK-LABEL: func.func @places_part0(%n: tensor<i64>, %x: tensor<3xf64>, %y: tensor<3xf64>) -> (tensor<i64>, tensor<3xf64>, tensor<3xf64>)
// CHECK-SAME:      irkit.state = array<i64: 0, 0, 1, 1, 2, 2>
// CHECK:       func.func @places(
// CHECK:         scf.for {{.*}} -> (tensor<3xf64>, tensor<3xf64>, tensor<i64>) {
func.func @places(%a: tensor<3xf64>, %b: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a, %y = %b) -> (tensor<3xf64>, tensor<3xf64>) {
    %n = arith.index_cast %i : index to i64
    %t = tensor.from_elements %n : tensor<i64>
    %f = graph.cast %t {to = f64} : (tensor<i64>) -> tensor<f64>
    %z = graph.add %x, %f : (tensor<3xf64>, tensor<f64>) -> tensor<3xf64>
    scf.yield %y, %x : tensor<3xf64>, tensor<3xf64>
  }
  func.return %r#0, %r#1 : tensor<3xf64>, tensor<3xf64>
}

// A row that is read twice, once without its leading dimension, is one slice: the insertion is in its place.
// CHECK-LABEL: func.func @twice_part0(%{{.*}}: tensor<1x3xf64>, %w: tensor<3xf64>) -> tensor<1x3xf64>
// CHECK-SAME:      irkit.state = array<i64: 0, 0>
// CHECK:       func.func @twice(
// CHECK:         %[[ROW:.*]] = tensor.extract_slice
// CHECK-NEXT:    func.call @twice_part0(%[[ROW]], %w)
func.func @twice(%a: tensor<9x3xf64>, %w: tensor<3xf64>) -> tensor<9x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) -> (tensor<9x3xf64>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<1x3xf64>
    %again = tensor.extract_slice %x[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<3xf64>
    %y = graph.mul %again, %w : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %z = graph.add %row, %y : (tensor<1x3xf64>, tensor<3xf64>) -> tensor<1x3xf64>
    %u = tensor.insert_slice %z into %x[%i, 0] [1, 3] [1, 1] : tensor<1x3xf64> into tensor<9x3xf64>
    scf.yield %u : tensor<9x3xf64>
  }
  func.return %r : tensor<9x3xf64>
}

// A row that is read again when something else is in its place is copied before.
// CHECK-LABEL: func.func @overwritten_part0(
// CHECK:         %[[OLD:.*]] = graph.reshape %row {shape = array<i64: 1, 3>}
// CHECK:         func.return %{{.*}}, %[[OLD]]
// CHECK:       func.func @overwritten(
// CHECK:         %[[PARTS:.*]], %[[ROW:.*]] = func.call @overwritten_part0(
// CHECK:         func.call @overwritten_part1(%again, %[[ROW]])
func.func @overwritten(%a: tensor<9x3xf64>, %w: tensor<1x3xf64>) -> tensor<9x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) -> (tensor<9x3xf64>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<1x3xf64>
    %y = graph.neg %w : (tensor<1x3xf64>) -> tensor<1x3xf64>
    %u = tensor.insert_slice %y into %x[%i, 0] [1, 3] [1, 1] : tensor<1x3xf64> into tensor<9x3xf64>
    %again = tensor.extract_slice %u[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<1x3xf64>
    %z = graph.add %again, %row : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<1x3xf64>
    %v = tensor.insert_slice %z into %u[%i, 0] [1, 3] [1, 1] : tensor<1x3xf64> into tensor<9x3xf64>
    scf.yield %v : tensor<9x3xf64>
  }
  func.return %r : tensor<9x3xf64>
}
