// RUN: irkit-opt %s --to=schedule --device=cpu2 --check-semantics | filecheck %s

// On a CPU what is tensorised is a tile of vector registers, whatever factors may be rounded to.

// CHECK:      task.roperator @gemm_0
// CHECK-SAME: rkernel = "generated.nest"
// CHECK-SAME: tensorise mi, ni, k; cache B at no
func.func @main(%a: tensor<32x48xf32>, %b: tensor<48x48xf32>) -> tensor<32x48xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; bind m to veu in 2; split m by 8 as mo, mi; split n by 48 as no, ni; reorder no, mo, mi, ni, k; tensorise mi, ni, k; cache B at no">} : (tensor<32x48xf32>, tensor<48x48xf32>) -> tensor<32x48xf32>
  func.return %c : tensor<32x48xf32>
}
