// RUN: irkit-opt %s -p 'sink-light-reshapes{device="h200"},fuse-elementwise' | filecheck %s
// RUN: irkit-opt %s -p 'sink-light-reshapes,fuse-elementwise' | filecheck %s --check-prefix=CPU

// One loop nest, over windows and what is in them; an image is read at y * 2 + p.
// CHECK-LABEL: func.func @main
// CHECK:       %[[Y:.*]] = linalg.generic {indexing_maps = [{{.*}}affine_map<(d0, d1, d2, d3, d4) -> (d0, ((d1 * 2) + d2), ((d3 * 2) + d4))>{{.*}} ins(%w, %g, %x : {{.*}}) outs
// CHECK-NOT:   linalg.generic
// CHECK:       %[[Z:.*]] = tensor.collapse_shape %[[Y]]
// CHECK-NEXT:  func.return %[[Z]] : tensor<8x14x14xf32>

// CPU-LABEL: func.func @main
// CPU:       linalg.generic
// CPU:       tensor.collapse_shape
// CPU:       linalg.generic
// CPU:       func.return
func.func @main(%w: tensor<8x7x7xf32>, %g: tensor<8x7x2x7x2xf32>, %x: tensor<8x14x14xf32>) -> tensor<8x14x14xf32> {
  %0 = tensor.empty() : tensor<8x7x2x7x2xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%w, %g : tensor<8x7x7xf32>, tensor<8x7x2x7x2xf32>) outs(%0 : tensor<8x7x2x7x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x7x2x7x2xf32>
  %2 = tensor.collapse_shape %1 [[0 : i64], [1 : i64, 2 : i64], [3 : i64, 4 : i64]] : tensor<8x7x2x7x2xf32> into tensor<8x14x14xf32>
  %3 = tensor.empty() : tensor<8x14x14xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %x : tensor<8x14x14xf32>, tensor<8x14x14xf32>) outs(%3 : tensor<8x14x14xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.addf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x14x14xf32>
  func.return %4 : tensor<8x14x14xf32>
}
