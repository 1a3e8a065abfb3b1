// RUN: not irkit-opt %s -p test-fail 2>&1 | filecheck %s --check-prefix=FAIL
// RUN: not --crash irkit-opt %s -p test-crash 2>&1 | filecheck %s --check-prefix=CRASH
// RUN: not --crash irkit-opt %s -p test-break-op 2>&1 | filecheck %s --check-prefix=BREAK

// A pass may fail: the user's error.
// FAIL:     failing-passes.mlir: error: pass 'test-fail' failed: this module is not for me
// FAIL-NOT: {{.}}

// Anything else is irkit's fault, and the only case with a traceback.
// CRASH: Traceback (most recent call last):
// CRASH: ZeroDivisionError: test-crash always does this
// CRASH: failing-passes.mlir: error: internal error: ZeroDivisionError: test-crash always does this
// CRASH: note: wrote a reproducer to '{{.*}}.mlir'

// BREAK: failing-passes.mlir:[[# @LINE + 3]]:1: error: 'func.func':
// BREAK: note: pass 'test-break-op' left IR that does not verify
// BREAK-NOT: Traceback
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
