// RUN: irkit-opt %s -p fuse-elementwise | filecheck %s

// Bytes of the sums of an integer product are made by themselves, whatever reads them; floats are not.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = linalg.generic {{.*}}"reduction"
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<4x4xi32>) {{.*}}
// CHECK: arith.trunci
// CHECK: } -> tensor<4x4xi8>
// CHECK: linalg.generic {{.*}} ins(%[[B]] : tensor<4x4xi8>)
// CHECK: arith.sitofp
// CHECK: arith.mulf
// CHECK: } -> tensor<4x4xf32>
// CHECK-NEXT: func.return
func.func @main(%a: tensor<4x8xi8>, %b: tensor<8x4xi8>) -> tensor<4x4xf32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x4xi32>
  %c = linalg.fill ins(%zero : i32) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x8xi8>, tensor<8x4xi8>) outs(%c : tensor<4x4xi32>) {
  ^bb0(%p: i8, %q: i8, %o: i32):
    %0 = arith.extsi %p : i8 to i32
    %1 = arith.extsi %q : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<4x4xi32>
  %f = tensor.empty() : tensor<4x4xi8>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x4xi32>) outs(%f : tensor<4x4xi8>) {
  ^bb0(%p: i32, %o: i8):
    %0 = arith.trunci %p : i32 to i8
    linalg.yield %0 : i8
  } -> tensor<4x4xi8>
  %g = tensor.empty() : tensor<4x4xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%n : tensor<4x4xi8>) outs(%g : tensor<4x4xf32>) {
  ^bb0(%p: i8, %o: f32):
    %0 = arith.sitofp %p : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<4x4xf32>) outs(%g : tensor<4x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.mulf %p, %p : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}
