// RUN: irkit-opt %s -p narrow-loops | filecheck %s
// RUN: irkit-opt %s -p narrow-loops --check-semantics > /dev/null
// RUN: irkit-opt %s -p narrow-loops,narrow-loops | filecheck %s
// RUN: irkit-opt %s -p narrow-loops --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// One element is read and written: it alone is handed on.
// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]] = graph.slice %b {offsets = array<i64: 4>, sizes = array<i64: 1>
// CHECK-NEXT:    %[[Q:.*]] = scf.for %{{.*}} iter_args(%a = %[[P]]) -> (tensor<1xf64>)
// CHECK-NEXT:      %[[Z:.*]] = graph.exp %a
// CHECK-NEXT:      scf.yield %[[Z]]
// CHECK:         %[[R:.*]] = tensor.insert_slice %[[Q]] into %b[4] [1] [1]
// CHECK-NEXT:    func.return %[[R]]
func.func @main(%b: tensor<99xf64>) -> tensor<99xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %b) -> (tensor<99xf64>) {
    %y = graph.slice %a {offsets = array<i64: 4>, sizes = array<i64: 1>, strides = array<i64: 1>} : (tensor<99xf64>) -> tensor<1xf64>
    %z = graph.exp %y : (tensor<1xf64>) -> tensor<1xf64>
    %w = tensor.insert_slice %z into %a[4] [1] [1] : tensor<1xf64> into tensor<99xf64>
    scf.yield %w : tensor<99xf64>
  }
  func.return %r : tensor<99xf64>
}

// A box around all of them: backward slices, steps, parts that are written one after another.
// CHECK-LABEL: func.func @box
// CHECK:         graph.slice %b {offsets = array<i64: 1, 2>, sizes = array<i64: 3, 4>
// CHECK:         scf.for %{{.*}} -> (tensor<3x4xf64>)
// CHECK-NEXT:      graph.slice %a {offsets = array<i64: 2, 0>, sizes = array<i64: 2, 2>, strides = array<i64: -1, 3>}
// CHECK:           %[[V:.*]] = tensor.insert_slice %{{.*}} into %a[0, 0] [2, 2] [1, 1]
// CHECK:           tensor.insert_slice %{{.*}} into %[[V]][1, 0] [2, 2] [1, 2]
// CHECK:         tensor.insert_slice %{{.*}} into %b[1, 2] [3, 4] [1, 1]
func.func @box(%b: tensor<9x9xf64>) -> tensor<9x9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %b) -> (tensor<9x9xf64>) {
    %y = graph.slice %a {offsets = array<i64: 3, 2>, sizes = array<i64: 2, 2>, strides = array<i64: -1, 3>} : (tensor<9x9xf64>) -> tensor<2x2xf64>
    %v = tensor.insert_slice %y into %a[1, 2] [2, 2] [1, 1] : tensor<2x2xf64> into tensor<9x9xf64>
    %n = graph.neg %y : (tensor<2x2xf64>) -> tensor<2x2xf64>
    %w = tensor.insert_slice %n into %v[2, 2] [2, 2] [1, 2] : tensor<2x2xf64> into tensor<9x9xf64>
    scf.yield %w : tensor<9x9xf64>
  }
  func.return %r : tensor<9x9xf64>
}

// Read at a place that moves; needed as a whole; most of it written; handed on in another's place.
// CHECK-LABEL: func.func @whole
// CHECK:         scf.for %{{.*}} -> (tensor<99xf64>, tensor<99xf64>, tensor<99xf64>)
// CHECK:         scf.for %{{.*}} -> (tensor<99xf64>, tensor<99xf64>)
// MISSED:        it needs all, or most, of each array that it hands on
func.func @whole(%b: tensor<99xf64>) -> (tensor<99xf64>, tensor<99xf64>, tensor<99xf64>, tensor<99xf64>, tensor<99xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %b, %d = %b, %e = %b) -> (tensor<99xf64>, tensor<99xf64>, tensor<99xf64>) {
    %y = tensor.extract_slice %a[%i] [1] [1] : tensor<99xf64> to tensor<1xf64>
    %w = tensor.insert_slice %y into %a[4] [1] [1] : tensor<1xf64> into tensor<99xf64>
    %v = tensor.insert_slice %y into %d[4] [1] [1] : tensor<1xf64> into tensor<99xf64>
    %n = graph.neg %v : (tensor<99xf64>) -> tensor<99xf64>
    %p = graph.slice %n {offsets = array<i64: 0>, sizes = array<i64: 60>, strides = array<i64: 1>} : (tensor<99xf64>) -> tensor<60xf64>
    %q = tensor.insert_slice %p into %e[9] [60] [1] : tensor<60xf64> into tensor<99xf64>
    scf.yield %w, %v, %q : tensor<99xf64>, tensor<99xf64>, tensor<99xf64>
  }
  %s:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %b, %d = %b) -> (tensor<99xf64>, tensor<99xf64>) {
    %y = graph.slice %a {offsets = array<i64: 4>, sizes = array<i64: 1>, strides = array<i64: 1>} : (tensor<99xf64>) -> tensor<1xf64>
    %w = tensor.insert_slice %y into %d[5] [1] [1] : tensor<1xf64> into tensor<99xf64>
    scf.yield %w, %a : tensor<99xf64>, tensor<99xf64>
  }
  func.return %r#0, %r#1, %r#2, %s#0, %s#1 : tensor<99xf64>, tensor<99xf64>, tensor<99xf64>, tensor<99xf64>, tensor<99xf64>
}
