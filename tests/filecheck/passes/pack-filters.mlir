// RUN: irkit-opt %s -p 'form-roperators,pack-filters{device=cpu2 always=true}' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators,pack-filters{device=cpu2}' --remarks=missed 2>&1 | filecheck %s --check-prefix=SMALL
// RUN: irkit-opt %s -p 'form-roperators,pack-filters{device=h200 always=true}' | filecheck %s --check-prefix=GPU

// Three filters of two channels are one block of 16; zeros fill it.
// CHECK-LABEL: task.roperator @conv_0(
// CHECK-SAME: tensor<1x2x4x4xf32>, {{%\S+}}: tensor<1x2x1x1x16xf32>) -> tensor<1x3x4x4xf32>
// CHECK: affine_map<({{.*}}) -> (({{.*}} floordiv 16), {{.*}}, {{.*}}, {{.*}}, ({{.*}} mod 16))>
// CHECK-LABEL: func.func @main
// CHECK: [[P:%\S+]] = arith.constant dense{{.*}} : tensor<1x2x1x1x16xf32>
// CHECK-NOT: tensor<3x2x1x1xf32>
// CHECK: task.launch @conv_0({{%\S+}}, [[P]])
// CHECK: task.launch @conv_0({{%\S+}}, [[P]])

// Filters that are no constants stay as they are, and so do those of what is no faster with others.
// CHECK: task.launch @conv_1({{%\S+}}, {{%\S+}}) : (tensor<1x3x4x4xf32>, tensor<5x3x1x1xf32>)
// SMALL-DAG: remark: {{.*}}its filters are not known
// SMALL-DAG: remark: {{.*}}ns more
// SMALL: task.launch @conv_0({{%\S+}}, {{%\S+}}) : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>)
// GPU: task.launch @conv_0({{%\S+}}, {{%\S+}}) : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>)
func.func @main(%x: tensor<1x2x4x4xf32>, %v: tensor<5x3x1x1xf32>) -> (tensor<1x3x4x4xf32>, tensor<1x5x4x4xf32>) {
  %w = arith.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]], [[[5.0]], [[6.0]]]]> : tensor<3x2x1x1xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, m, y, x, k, p, q) -> (n, k, y + p, x + q)>, affine_map<(n, m, y, x, k, p, q) -> (m, k, p, q)>, affine_map<(n, m, y, x, k, p, q) -> (n, m, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) outs(%init : tensor<1x3x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x3x4x4xf32>
  %x2 = linalg.generic {indexing_maps = [affine_map<(n, m, y, x) -> (n, m, y, x)>, affine_map<(n, m, y, x) -> (n, m, y, x)>, affine_map<(n, m, y, x) -> (n, m, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %x : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%x : tensor<1x2x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<1x2x4x4xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, m, y, x, k, p, q) -> (n, k, y + p, x + q)>, affine_map<(n, m, y, x, k, p, q) -> (m, k, p, q)>, affine_map<(n, m, y, x, k, p, q) -> (n, m, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x2, %w : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) outs(%init : tensor<1x3x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x3x4x4xf32>
  %e5 = tensor.empty() : tensor<1x5x4x4xf32>
  %init5 = linalg.fill ins(%zero : f32) outs(%e5 : tensor<1x5x4x4xf32>) -> tensor<1x5x4x4xf32>
  %u = linalg.generic {indexing_maps = [affine_map<(n, m, y, x, k, p, q) -> (n, k, y + p, x + q)>, affine_map<(n, m, y, x, k, p, q) -> (m, k, p, q)>, affine_map<(n, m, y, x, k, p, q) -> (n, m, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%y, %v : tensor<1x3x4x4xf32>, tensor<5x3x1x1xf32>) outs(%init5 : tensor<1x5x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x5x4x4xf32>
  return %z, %u : tensor<1x3x4x4xf32>, tensor<1x5x4x4xf32>
}
