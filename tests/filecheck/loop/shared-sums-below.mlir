// RUN: not irkit-opt %s --to=task --device=cpu2 2>&1 | filecheck %s

// Below the graph level an rTask has all terms of its sums.

// CHECK: a schedule that shares sums over 'k' out, of one rOperator: `cut-sums` makes two of the statement, at the graph level
func.func @main(%a: tensor<6x4xf32>, %b: tensor<4x8xf32>, %c: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<6x4xf32>, tensor<4x8xf32>) outs(%c : tensor<6x8xf32>) attrs = {irkit.schedule = #loop.schedule<"for m, n, k of A, B; bind k to veu in 2">} {
  ^bb0(%x: f32, %w: f32, %acc: f32):
    %p = arith.mulf %x, %w : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  func.return %y : tensor<6x8xf32>
}
