// Products with matrices of 4-bit integers: forms, and all levels.
// RUN: irkit-opt %s | irkit-opt | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --check-semantics --to=schedule | filecheck %s --check-prefix=SCHEDULE

// CHECK-LABEL: func.func @main
// CHECK: %y = graph.nibble_matmul %x, %q, %s, %z {block = 32 : i64, columns = 100 : i64} : (tensor<2x3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>, tensor<2x3x64xf32>) -> tensor<2x3x100xf32>
// SCHEDULE: task.roperator @nibble_product_0
// SCHEDULE-SAME: rkernel = "nibble_product.
// SCHEDULE: te.nibble_matmul
// SCHEDULE: math.absf
func.func @main(%x: tensor<2x3x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>, %z: tensor<2x3x64xf32>) -> tensor<2x3x100xf32> {
  %y = graph.nibble_matmul %x, %q, %s, %z {block = 32 : i64, columns = 100 : i64} : (tensor<2x3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>, tensor<2x3x64xf32>) -> tensor<2x3x100xf32>
  %a = graph.abs %y : (tensor<2x3x100xf32>) -> tensor<2x3x100xf32>
  func.return %a : tensor<2x3x100xf32>
}
