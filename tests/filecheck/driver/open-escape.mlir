// RUN: irkit-opt %s --verify-diagnostics

// As with a string that is not closed: xDSL's own lexer would take a day.
func.func @main() {
  // expected-error@+1 {{'\7' begins no escape of a string}}
  "foo.bar"() {a = "a string as long as this one, \22quoted\22 and with a tab \t, but \7: would take a day"} : () -> ()
  func.return
}
