// RUN: irkit-opt %s -p cse,test-mark,dce --print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: irkit-opt %s -p cse,test-mark --mlir-print-ir-after-all 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: irkit-opt %s -p cse,test-mark --mlir-print-ir-before-all 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: irkit-opt %s -p cse,test-mark --print-ir-after-all | filecheck %s --check-prefix=STDOUT
// RUN: irkit-opt %s -p cse,test-mark --print-ir-tree-dir=%t.dumps && cat %t.dumps/002-test-mark.mlir | filecheck %s --check-prefix=FILE
// RUN: irkit-opt %s -p cse,test-mark,dce --print-ir-tree-dir=%t.changes --print-ir-after-change --print-ir-diff && test ! -e %t.changes/001-cse.mlir && test ! -e %t.changes/003-dce.diff && cat %t.changes/000-input.mlir %t.changes/002-test-mark.diff | filecheck %s --check-prefix=DIFF
// RUN: irkit-opt %t.dumps/002-test-mark.mlir -p cse | filecheck %s --check-prefix=AGAIN
// RUN: irkit-opt %s -p cse,test-mark --print-ir-diff 2>&1 | filecheck %s --check-prefix=STDERR-DIFF
// RUN: irkit-opt %s -p test-mark --print-ir-before-all --print-ir-tree-dir=%t.before && cat %t.before/001-test-mark.before.mlir | filecheck %s --check-prefix=FILE-BEFORE
// RUN: not irkit-opt %s -p cse,test-fail --print-ir-tree-dir=%t.failed 2>&1 && cat %t.failed/002-test-fail.failed.mlir | filecheck %s --check-prefix=FAILED
// RUN: irkit-opt %s --split-input-file -p cse --print-ir-tree-dir=%t.parts && test -e %t.parts/part-001/001-cse.mlir
// RUN: irkit-opt %s -p cse,test-mark{label=other} --timing 2>&1 | filecheck %s --check-prefix=TIMING

// CHANGE-NOT:  IR dump after cse
// CHANGE:      // -----// IR dump after test-mark{label="seen"} //----- //
// CHANGE-NEXT: builtin.module {
// CHANGE:        {mark = "seen"}
// CHANGE-NOT:  IR dump after dce

// AFTER:      // -----// IR dump after cse //----- //
// AFTER:      graph.relu %x : (tensor<4xf32>)
// AFTER:      // -----// IR dump after test-mark{label="seen"} //----- //
// AFTER:      graph.relu %x {mark = "seen"}

// BEFORE:     // -----// IR dump before cse //----- //
// BEFORE:     // -----// IR dump before test-mark{label="seen"} //----- //
// BEFORE:     graph.relu %x : (tensor<4xf32>)
// BEFORE:     graph.relu %x {mark = "seen"}

// Only the result is on stdout.
// STDOUT-NOT: IR dump

// A file says exactly what was run, options with their defaults, and can be read again.
// FILE:      // Pass 2 of 2, after: test-mark{label="seen"}
// FILE-NEXT: // It changed the module.
// FILE:     builtin.module
// FILE:     graph.relu %x {mark = "seen"}

// AGAIN: graph.relu %x {mark = "seen"}

// DIFF:      // The input of 3 passes.
// DIFF:      --- 001-cse.mlir
// DIFF-NEXT: +++ 002-test-mark.mlir
// DIFF:      -{{ +}}%y = graph.relu %x :
// DIFF-NEXT: +{{ +}}%y = graph.relu %x {mark = "seen"} :

// STDERR-DIFF-NOT: by cse
// STDERR-DIFF:     // -----// IR diff by test-mark{label="seen"} //----- //
// STDERR-DIFF:     +{{ +}}%y = graph.relu %x {mark = "seen"} :

// FILE-BEFORE:     // Pass 1 of 1, before: test-mark{label="seen"}
// FILE-BEFORE-NOT: mark =

// FAILED:      // Pass 2 of 2, after failure of: test-fail
// FAILED-NEXT: // It failed.
// FAILED:      "builtin.module"

// TIMING-DAG: ===- execution time -===
// TIMING-DAG: %  cse
// TIMING-DAG: %  test-mark
// TIMING-DAG: %  verify
// TIMING-DAG: 100.0%  total
// TIMING-DAG: mark = "other"
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
