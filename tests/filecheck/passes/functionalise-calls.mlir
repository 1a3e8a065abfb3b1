// A call of the host is no value; it is said what makes values of the rest.
// RUN: not irkit-opt %s -p functionalise 2>&1 | filecheck %s
// RUN: irkit-opt %s -p form-regions | filecheck %s --check-prefix=REGIONS

// CHECK: error: pass 'functionalise' failed: 'program.call' of @f at {{.*}}functionalise-calls.mlir:[[# @LINE + 3]]:3 is the host's: form-regions cuts the program there, and gives functions that can be made values of
// REGIONS: program.call @f
func.func @main(%x: memref<4xf64>) {
  program.call @f(%x) : memref<4xf64>
  func.return
}
