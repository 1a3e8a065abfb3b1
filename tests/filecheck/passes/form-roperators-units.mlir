// RUN: irkit-opt %s -p form-roperators --check-semantics --split-input-file | filecheck %s

// A row that is computed, and inserted as a matrix of one row, is computed where it is inserted.
// CHECK:       task.roperator @map_0
// CHECK:         [[r:%.*]] = linalg.generic
// CHECK:         [[m:%.*]] = tensor.expand_shape [[r]]
// CHECK:         tensor.insert_slice [[m]]
// CHECK-NOT:   task.roperator
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[w:%.*]] = task.launch @map_0(%x, %a)
// CHECK-NEXT:    func.return [[w]]
#i = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>, %a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.exp %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %m = tensor.expand_shape %r [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %w = tensor.insert_slice %m into %a[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<3x4xf32>
  return %w : tensor<3x4xf32>
}

// -----

// Behind another shape than that it is read from memory.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[r:%.*]] = task.launch @map_0(%x)
// CHECK-NEXT:    [[m:%.*]] = tensor.expand_shape [[r]]
// CHECK-NEXT:    [[w:%.*]] = task.launch @map_1([[m]], %a)
// CHECK-NEXT:    func.return [[w]]
#i = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>, %a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.exp %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %m = tensor.expand_shape %r [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %w = tensor.insert_slice %m into %a[1, 1] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<3x4xf32>
  return %w : tensor<3x4xf32>
}
