// RUN: irkit-opt %s --split-input-file -p cse | filecheck %s
// RUN: not irkit-opt %s 2>&1 | filecheck %s --check-prefix=WHOLE

// Each part has names of its own; without the flag the second @f would be a redefinition of %x.
// CHECK-LABEL: func.func @f
// CHECK:       // -----
// CHECK-NEXT:  builtin.module
// CHECK:         func.func @g
%x = "test.op"() : () -> i32
func.func @f() {
  func.return
}

// -----

// WHOLE: split-input.mlir:[[# @LINE + 1]]:1: error: SSA value %x is already defined
%x = "test.op"() : () -> i32
func.func @g() {
  func.return
}
