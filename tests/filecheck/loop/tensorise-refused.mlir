// RUN: not irkit-opt %s --to=task --device=h200 2>&1 | filecheck %s

// Tensor cores round factors, which nobody allowed.

// CHECK: 'tensorise': 'mi' of products in float32: tensor cores round factors, to tf32, bf16, f16 (`set-precision`)
func.func @main(%a: tensor<32x48xf32>, %b: tensor<48x24xf32>) -> tensor<32x24xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; split m by 16 as mo, mi; split n by 8 as no, ni; split k by 16 as ko, ki; reorder mo, no, ko, mi, ni, ki; tensorise mi, ni, ki; cache A at ko; cache B at ko">} : (tensor<32x48xf32>, tensor<48x24xf32>) -> tensor<32x24xf32>
  func.return %c : tensor<32x24xf32>
}
