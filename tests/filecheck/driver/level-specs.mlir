// RUN: not irkit-opt %s -p convert-graph-to-tensor,convert-graph-to-tensor,partition-rtasks 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not --crash irkit-opt %s -p test-half-lower 2>&1 | filecheck %s --check-prefix=HALF
// RUN: not irkit-opt %s -p convert-graph-to-tensor,test-half-lower 2>&1 | filecheck %s --check-prefix=LATE
// RUN: irkit-opt %s -p test-half-lower --no-verify-each | filecheck %s --check-prefix=OFF

// A pass says what level it takes and what level it leaves; both are checked, by its name and an op's.
// EARLY: level-specs.mlir:[[# @LINE + 10]]:8: error: pass 'partition-rtasks' requires the task level, but 'linalg.generic' does not belong in 'func.func'
// EARLY: note: 'form-roperators' makes a module of that level

// HALF:  level-specs.mlir:[[# @LINE + 7]]:8: error: pass 'test-half-lower' must produce the tensor level, but 'graph.relu' does not belong in 'func.func'
// HALF:  note: wrote a reproducer

// LATE:  error: pass 'test-half-lower' requires the graph level, but 'tensor.empty' does not belong in 'func.func'

// OFF:   graph.relu
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
