// A file without an op is an empty module, as for mlir-opt.
// RUN: irkit-opt %s | filecheck %s

// CHECK:      builtin.module {
// CHECK-NEXT: }
