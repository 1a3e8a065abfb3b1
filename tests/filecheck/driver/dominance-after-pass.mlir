// RUN: not --crash irkit-opt %s -p test-break-dominance 2>&1 | filecheck %s
// RUN: not --crash irkit-opt %s -p cse,test-break-dominance,dce --print-ir-after-failure 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: irkit-opt %s -p test-break-dominance --no-verify-each | filecheck %s --check-prefix=UNVERIFIED
// RUN: irkit-opt %s -p test-break-dominance --disable-verify | filecheck %s --check-prefix=UNVERIFIED

// A pass that breaks the IR is irkit's fault: exit code 2, a reproducer, but no traceback.
// CHECK:      dominance-after-pass.mlir:[[# @LINE + 16]]:8: error: operand 0 of 'graph.add', '%r', does not dominate this use
// CHECK:      dominance-after-pass.mlir:{{[0-9]+}}:8: note: '%r' is defined here, later in the same block
// CHECK:      note: pass 'test-break-dominance' left IR that does not verify
// CHECK-NEXT: note: wrote a reproducer to '{{.*}}.mlir'
// CHECK-NOT:  Traceback

// DUMP:      // -----// IR dump after failure of test-break-dominance //----- //
// DUMP-NEXT: "builtin.module"
// DUMP:      "graph.add"
// DUMP:      "graph.relu"
// DUMP:      error: operand 0 of 'graph.add'

// UNVERIFIED: graph.add
// UNVERIFIED: graph.relu
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %s = graph.add %r, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %s : tensor<4xf32>
}
