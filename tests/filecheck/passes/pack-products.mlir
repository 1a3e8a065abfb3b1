// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true}' | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true only=first}' | filecheck %s --check-prefix=FIRST
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true only=second}' | filecheck %s --check-prefix=SECOND
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true terms=float32}' | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200 always=true terms=scaled}' --remarks=missed 2>&1 | filecheck %s --check-prefix=FEW
// RUN: not irkit-opt %s -p 'form-roperators,pack-products{device=h200 only=third}' 2>&1 | filecheck %s --check-prefix=THIRD
// RUN: not irkit-opt %s -p 'form-roperators,pack-products{device=h200 terms=float64}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=h200}' | filecheck %s --check-prefix=SMALL
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=a100 always=true}' | filecheck %s --check-prefix=SMALL
// RUN: irkit-opt %s -p 'form-roperators,pack-products{device=test4 always=true}' | filecheck %s --check-prefix=SMALL

// A small product is better read as it is, and only warp groups read packed terms.
// SMALL-NOT: te.pack

// Of one operand alone: x for both products, or the weights of each.
// FIRST: te.prepacked {{%\S+}}, {{%\S+}} {precision = "float32", terms = 1 : i64, depth = 40 : i64}
// FIRST-NOT: terms = 0
// FIRST: task.launch @pack_0(
// FIRST-NOT: task.launch @pack_
// SECOND: te.prepacked {{%\S+}}, {{%\S+}} {precision = "float32", terms = 0 : i64, depth = 40 : i64}
// SECOND-NOT: terms = 1
// SECOND: task.launch @pack_0(
// SECOND: task.launch @pack_0(
// THIRD: pass 'pack-products' failed: only='third': expected 'first' or 'second'
// UNKNOWN: pass 'pack-products' failed: terms='float64': expected one of float32, tf32, bf16, f16, scaled

// Sums of so few terms are not those of scaled ones.
// FEW: its terms can be float32 alone
// FEW-NOT: te.pack

// x is packed once for both products, and each product has its terms beside its operands.
// CHECK-LABEL: task.roperator @gemm_0(
// CHECK-SAME: [[X:%\S+]]: tensor<16x40xf32>, [[W:%\S+]]: tensor<40x24xf32>, [[P:%\S+]]: tensor<2x3x2x8x32xbf16>, [[Q:%\S+]]: tensor<2x3x3x8x32xbf16>) -> tensor<16x24xf32>
// CHECK: te.prepacked {{%\S+}}, {{%\S+}} {precision = "float32", terms = 1 : i64, depth = 40 : i64}
// CHECK: te.prepacked {{%\S+}}, {{%\S+}} {precision = "float32", terms = 0 : i64, depth = 40 : i64}
// CHECK: task.roperator @pack_0(
// CHECK-NEXT: te.pack {{%\S+}} {precision = "float32", terms = 1 : i64, depth = 40 : i64} : (tensor<16x40xf32>) -> tensor<2x3x2x8x32xbf16>
// CHECK-LABEL: func.func @main
// CHECK: task.launch @pack_0(
// CHECK-NOT: task.launch @pack_0(
// CHECK: task.launch @gemm_0(
// CHECK: task.launch @gemm_0(
func.func @main(%x: tensor<16x40xf32>, %v: tensor<40x24xf32>, %w: tensor<40x24xf32>) -> (tensor<16x24xf32>, tensor<16x24xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %v : tensor<16x40xf32>, tensor<40x24xf32>) outs(%init : tensor<16x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x24xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<16x40xf32>, tensor<40x24xf32>) outs(%init : tensor<16x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x24xf32>
  return %y, %z : tensor<16x24xf32>, tensor<16x24xf32>
}
