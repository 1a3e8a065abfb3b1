// RUN: irkit-opt %s --verify-diagnostics

// The length matters: xDSL's own lexer takes exponential time over a string that is not closed.
func.func @main() {
  // expected-error@+1 {{this string is not closed on its line}}
  "foo.bar"() {a = "a string as long as this one would take a day to reject} : () -> ()
  func.return
}
