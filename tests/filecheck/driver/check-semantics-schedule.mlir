// RUN: irkit-opt %s --to=schedule --device=test4 --check-semantics | filecheck %s
// RUN: not irkit-opt %s --check-semantics -p 'convert-graph-to-tensor,form-roperators,partition-rtasks{device="test4"},schedule-wavefront,test-swap-reads,pin-residents,plan-memory' 2>&1 | filecheck %s --check-prefix=SWAPPED

// A schedule is run before its memory is planned too: the pass at fault is named, not its neighbours.
// CHECK:   task.append
// SWAPPED: error: pass 'test-swap-reads' changed the meaning of the module: output 0:
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = graph.softmax %x {axis = 1 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = graph.softmax %y {axis = 1 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = graph.concat(%0, %1) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %3 = graph.softmax %2 {axis = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = graph.slice %3 {offsets = array<i64: 0, 2>, sizes = array<i64: -9223372036854775808, 4>, strides = array<i64: 1, 1>} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  func.return %4 : tensor<?x4xf32>
}
