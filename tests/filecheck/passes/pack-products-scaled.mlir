// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true terms=scaled}' | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true}' | filecheck %s --check-prefix=PARTS
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true terms=scaled only=first}' | filecheck %s --check-prefix=ALONE
// RUN: irkit-opt %s -p 'set-precision{precision=ieee},form-roperators,pack-products{device=h200 always=true}' | filecheck %s --check-prefix=IEEE

// Blocks of 64 terms in two parts of float16, one more block for what is said of rows.
// CHECK-LABEL: task.roperator @gemm_0(
// CHECK-SAME: tensor<2x2x2x8x64xf16>, {{%\S+}}: tensor<2x2x3x8x64xf16>) -> tensor<16x24xf32>
// CHECK: te.prepacked {{%\S+}}, {{%\S+}} {precision = "scaled", terms = 1 : i64, depth = 64 : i64}
// CHECK: te.prepacked {{%\S+}}, {{%\S+}} {precision = "scaled", terms = 0 : i64, depth = 64 : i64}
// CHECK: te.pack {{%\S+}} {precision = "scaled", terms = 1 : i64, depth = 64 : i64} : (tensor<16x64xf32>) -> tensor<2x2x2x8x64xf16>
// CHECK: te.pack {{%\S+}} {precision = "scaled", terms = 0 : i64, depth = 64 : i64} : (tensor<64x24xf32>) -> tensor<2x2x3x8x64xf16>

// PARTS: te.pack {{%\S+}} {precision = "float32"

// Those of one operand alone are multiplied by such as are scaled and cut on their way.
// ALONE-LABEL: task.roperator @gemm_0(
// ALONE: te.prepacked {{%\S+}}, {{%\S+}} {precision = "scaled", terms = 1 : i64, depth = 64 : i64}
// ALONE-NOT: te.prepacked
// ALONE: te.pack {{%\S+}} {precision = "scaled", terms = 1 : i64, depth = 64 : i64}
// ALONE-NOT: te.pack

// Parts are not plain products.
// IEEE-NOT: te.pack
func.func @main(%x: tensor<16x64xf32>, %v: tensor<64x24xf32>) -> tensor<16x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %v : tensor<16x64xf32>, tensor<64x24xf32>) outs(%init : tensor<16x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x24xf32>
  return %y : tensor<16x24xf32>
}
