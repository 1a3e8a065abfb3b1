// RUN: irkit-opt %s --allow-unregistered-dialect | filecheck %s
// RUN: not irkit-opt %s 2>&1 | filecheck %s --check-prefix=REFUSED

// REFUSED: unregistered.mlir:[[# @LINE + 4]]:3: error: unknown dialect 'mystery' of op 'mystery.op'
// CHECK:   "mystery.op"() {answer = 42 : i64} : () -> ()
func.func @main() {
  // An op of a dialect that nobody has.
  "mystery.op"() {answer = 42 : i64} : () -> ()
  func.return
}
