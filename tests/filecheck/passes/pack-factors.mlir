// RUN: irkit-opt %s -p 'form-roperators,pack-factors{device=cpu2 always=true}' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators,pack-factors{device=cpu2 always=true}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'form-roperators,pack-factors{device=h200 always=true}' | filecheck %s --check-prefix=GPU

// Two columns of three terms are one block of 16, however they lay; zeros fill it.
// CHECK-LABEL: task.roperator @gemm_0(
// CHECK-SAME: tensor<2x3xf32>, {{%\S+}}: tensor<1x3x16xf32>) -> tensor<2x2xf32>
// CHECK: affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> ((d1 floordiv 16), d2, (d1 mod 16))>
// CHECK-LABEL: task.roperator @gemm_1(
// CHECK-SAME: tensor<2x3xf32>, {{%\S+}}: tensor<1x3x16xf32>) -> tensor<2x2xf32>
// CHECK-LABEL: func.func @main
// CHECK: [[W:%\S+]] = arith.constant dense{{.*}} : tensor<1x3x16xf32>
// CHECK: [[T:%\S+]] = arith.constant dense{{.*}} : tensor<1x3x16xf32>
// CHECK: task.launch @gemm_0({{%\S+}}, [[W]])
// CHECK: task.launch @gemm_1({{%\S+}}, [[T]])
// An argument stays as it is.
// CHECK-LABEL: func.func @known_later
// CHECK-SAME: tensor<3x2xf32>

// GPU: arith.constant dense<{{.*}}> : tensor<3x2xf32>

// MISSED: pack-factors/PackFactor: 'task.roperator': its factor is not known
// MISSED: pack-factors/PackFactor: 'task.roperator': no factor lies as terms and columns, and is read by it alone

#x = affine_map<(i, j, k) -> (i, k)>
#w = affine_map<(i, j, k) -> (k, j)>
#t = affine_map<(i, j, k) -> (j, k)>
#y = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %t = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%init : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  %z = linalg.generic {indexing_maps = [#x, #t, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %t : tensor<2x3xf32>, tensor<2x3xf32>) outs(%init : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %y, %z : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @known_later(%x: tensor<4x3xf32>, %w: tensor<3x2xf32>) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// What is multiplied with itself has no columns of its own that could be in blocks.
func.func @squared(%x: tensor<4x3xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#x, #t, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %x : tensor<4x3xf32>, tensor<4x3xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
