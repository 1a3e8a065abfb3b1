// RUN: irkit-opt %s -p canonicalize | filecheck %s
// A sum that f32 cannot hold is infinite when it runs, and no constant of Python's.

// CHECK: arith.addf
// CHECK: arith.constant 3.000000e+00 : f32
func.func @main() -> (f32, f32) {
  %a = arith.constant 3.0e38 : f32
  %b = arith.constant 2.0e38 : f32
  %c = arith.addf %a, %b : f32
  %d = arith.constant 1.0 : f32
  %e = arith.constant 2.0 : f32
  %f = arith.addf %d, %e : f32
  func.return %c, %f : f32, f32
}
