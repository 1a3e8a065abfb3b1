// RUN: not --crash irkit-opt %s -p test-undo-each-other 2>&1 | filecheck %s --check-prefix=PAIR
// RUN: not --crash irkit-opt %s -p test-for-ever 2>&1 | filecheck %s --check-prefix=ONE

// Patterns that undo each other are stopped and named, with an op of each.
// PAIR:      endless.mlir:[[# @LINE + 10]]:8: error: pass 'test-undo-each-other' does not end: patterns 'AddToSub' and 'SubToAdd' undo each other: stopped after {{[0-9]+}} rewrites of a module of 4 ops
// PAIR-DAG:  endless.mlir:[[# @LINE + 9]]:8: note: 'AddToSub' rewrites 'graph.add'
// PAIR-DAG:  endless.mlir:[[# @LINE + 8]]:8: note: 'SubToAdd' rewrites 'graph.sub'
// PAIR:      note: wrote a reproducer to
// PAIR-NOT:  Traceback

// ONE:      error: pass 'test-for-ever' does not end: pattern 'SwapOperands' applies to its own result for ever
// ONE:      note: 'SwapOperands' rewrites 'graph.add'
// ONE-NOT:  Traceback
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %z = graph.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}
