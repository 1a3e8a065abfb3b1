// RUN: irkit-opt %s --split-input-file --verify-diagnostics

// A schedule is checked where it is read, and on the op whose loops it is about.

// expected-error@+2 {{'graph.expression' expects a schedule whose steps may be taken, got schedule:1:28: 'split' of 'q', which is no loop here; there are m, n, k}}
func.func @main(%a: tensor<6x4xf32>, %b: tensor<4x11xf32>) -> tensor<6x11xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; split q by 2">} : (tensor<6x4xf32>, tensor<4x11xf32>) -> tensor<6x11xf32>
  func.return %c : tensor<6x11xf32>
}
