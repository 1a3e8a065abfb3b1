// RUN: irkit-opt %s --to=schedule --device=h200 --check-semantics | filecheck %s
// RUN: irkit-opt %s | irkit-opt --print-op-generic | irkit-opt | filecheck %s --check-prefix=TEXT

// A warp's 16 by 8 sums, 16 terms at a time, by tensor cores, since factors may be rounded to TF32.

// TEXT:       tensorise mi, ni, ki; cache A at ko in 2; cache B at ko in 2">
// CHECK:      task.roperator @gemm_0
// CHECK-SAME: rkernel = "generated.nest"
// CHECK-SAME: tensorise mi, ni, ki
// CHECK:      irkit.precision = "tf32"
func.func @main(%a: tensor<32x48xf32>, %b: tensor<48x24xf32>) -> tensor<32x24xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; split m by 16 as mo, mi; split n by 8 as no, ni; split k by 16 as ko, ki; reorder mo, no, ko, mi, ni, ki; tensorise mi, ni, ki; cache A at ko in 2; cache B at ko in 2">, irkit.precision = "tf32"} : (tensor<32x48xf32>, tensor<48x24xf32>) -> tensor<32x24xf32>
  func.return %c : tensor<32x24xf32>
}
