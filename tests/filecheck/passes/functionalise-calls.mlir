// A call of the host is no value.
// RUN: not irkit-opt %s -p functionalise 2>&1 | filecheck %s

// CHECK: error: pass 'functionalise' failed: 'program.call' is no effect on arrays, nor a value
func.func @main(%x: memref<4xf64>) {
  program.call @f(%x) : memref<4xf64>
  func.return
}
