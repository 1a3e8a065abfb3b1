// RUN: irkit-opt %s -p cse,test-mark,dce --print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: irkit-opt %s -p cse,test-mark --mlir-print-ir-after-all 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: irkit-opt %s -p cse,test-mark --mlir-print-ir-before-all 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: irkit-opt %s -p cse,test-mark --print-ir-after-all | filecheck %s --check-prefix=STDOUT
// RUN: irkit-opt %s -p cse,test-mark --print-ir-tree-dir=%t.dumps && cat %t.dumps/01_after_test-mark.mlir | filecheck %s --check-prefix=FILE
// RUN: irkit-opt %s -p cse,test-mark{label=other} --timing 2>&1 | filecheck %s --check-prefix=TIMING

// CHANGE-NOT:  IR dump after cse
// CHANGE:      // -----// IR dump after test-mark //----- //
// CHANGE-NEXT: builtin.module {
// CHANGE:        {mark = "seen"}
// CHANGE-NOT:  IR dump after dce

// AFTER:      // -----// IR dump after cse //----- //
// AFTER:      graph.relu %x : (tensor<4xf32>)
// AFTER:      // -----// IR dump after test-mark //----- //
// AFTER:      graph.relu %x {mark = "seen"}

// BEFORE:     // -----// IR dump before cse //----- //
// BEFORE:     // -----// IR dump before test-mark //----- //
// BEFORE:     graph.relu %x : (tensor<4xf32>)
// BEFORE:     graph.relu %x {mark = "seen"}

// Only the result is on stdout.
// STDOUT-NOT: IR dump

// FILE:     builtin.module
// FILE:     graph.relu %x {mark = "seen"}

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
