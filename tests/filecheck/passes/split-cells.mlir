// RUN: irkit-opt %s -p 'form-roperators,split-cells{device=cpu1 always=true}' | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators,split-cells{device=cpu1}' | filecheck %s --check-prefix=FEW
// RUN: irkit-opt %s -p 'form-roperators,split-cells{device=cpu1 always=true}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// A product, and what becomes of a unit's sums, which lie side by side.
// CHECK-LABEL: task.roperator @gemm_0(
// CHECK-SAME: tensor<3x5xf32>, {{%\S+}}: tensor<4x5xf32>, {{%\S+}}: tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-LABEL: task.roperator @map_0(
// CHECK-SAME: tensor<3x4xf32>) -> tensor<3x2xf32>
// CHECK: affine_map<(d0, d1) -> (d0, (d1 * 2))>, affine_map<(d0, d1) -> (d0, ((d1 * 2) + 1))>
// A second term goes on from the first, which starts from a row of biases.
// CHECK-LABEL: task.roperator @gemm_1(
// CHECK-SAME: [[B:%\S+]]: tensor<4xf32>, {{%\S+}}: tensor<3x7xf32>, {{%\S+}}: tensor<4x7xf32>) -> tensor<3x4xf32>
// CHECK: affine_map<(d0, d1) -> (d1)>{{.*}} ins([[B]] : tensor<4xf32>)
// CHECK-NOT: task.roperator
// CHECK-LABEL: func.func @main
// CHECK-DAG: [[S:%\S+]] = tensor.collapse_shape %start {{.*}} : tensor<3x2x2xf32> into tensor<3x4xf32>
// CHECK-DAG: [[V:%\S+]] = tensor.collapse_shape %w {{.*}} : tensor<2x2x5xf32> into tensor<4x5xf32>
// CHECK: [[P:%\S+]] = task.launch @gemm_0(%x, [[V]], [[S]])
// CHECK-NEXT: task.launch @map_0([[P]])
// CHECK: [[Q:%\S+]] = task.launch @gemm_1(
// CHECK: [[R:%\S+]] = task.launch @gemm_0({{%\S+}}, {{%\S+}}, [[Q]])
// CHECK-NEXT: task.launch @map_0([[R]])
// A cell of one row stays as it is, and what followed the first follows the second.
// CHECK-LABEL: func.func @one
// CHECK: task.launch @recurrent_cell_2(
// MISSED: split-cells/SplitCell: {{.*}}it has one row

// Of few rows and small weights cells at once are faster.
// FEW-NOT: task.launch @gemm

#x = affine_map<(b, u, g, k) -> (b, k)>
#w = affine_map<(b, u, g, k) -> (u, g, k)>
#s = affine_map<(b, u, g, k) -> (b, u, g)>
#first = affine_map<(b, u) -> (b, u, 0)>
#second = affine_map<(b, u) -> (b, u, 1)>
#all = affine_map<(b, u) -> (b, u)>
func.func @main(%x: tensor<3x5xf32>, %w: tensor<2x2x5xf32>, %start: tensor<3x2x2xf32>, %h: tensor<3x7xf32>, %r: tensor<2x2x7xf32>, %bias: tensor<2x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %sums = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x5xf32>, tensor<2x2x5xf32>) outs(%start : tensor<3x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x2x2xf32>
  %e = tensor.empty() : tensor<3x2xf32>
  %y = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%sums, %sums : tensor<3x2x2xf32>, tensor<3x2x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x2xf32>
  %empty = tensor.empty() : tensor<3x2x2xf32>
  %begin = linalg.generic {indexing_maps = [affine_map<(b, u, g) -> (u, g)>, affine_map<(b, u, g) -> (b, u, g)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%bias : tensor<2x2xf32>) outs(%empty : tensor<3x2x2xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x2xf32>
  %one = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%h, %r : tensor<3x7xf32>, tensor<2x2x7xf32>) outs(%begin : tensor<3x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x2x2xf32>
  %two = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x5xf32>, tensor<2x2x5xf32>) outs(%one : tensor<3x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x2x2xf32>
  %z = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%two, %two : tensor<3x2x2xf32>, tensor<3x2x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x2xf32>
  return %y, %z : tensor<3x2xf32>, tensor<3x2xf32>
}

func.func @one(%x: tensor<1x5xf32>, %w: tensor<2x2x5xf32>, %start: tensor<1x2x2xf32>) -> tensor<1x2xf32> {
  %sums = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x5xf32>, tensor<2x2x5xf32>) outs(%start : tensor<1x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x2x2xf32>
  %e = tensor.empty() : tensor<1x2xf32>
  %y = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%sums, %sums : tensor<1x2x2xf32>, tensor<1x2x2xf32>) outs(%e : tensor<1x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
