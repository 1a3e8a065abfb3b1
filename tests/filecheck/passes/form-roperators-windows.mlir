// RUN: irkit-opt %s -p form-roperators --check-semantics --split-input-file | filecheck %s

// Windows read what is padded again and again: it is computed before, once.
// CHECK:       task.roperator @conv_0
// CHECK:         [[p:%.*]] = tensor.pad %0
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[a:%.*]] = task.launch @map_0(%x)
// CHECK-NEXT:    [[y:%.*]] = task.launch @conv_0([[a]], %w)
// CHECK-NEXT:    func.return [[y]]
#e = affine_map<(a, b, c, d) -> (a, b, c, d)>
#x = affine_map<(n, f, i, j, c, k, l) -> (n, c, i + k, j + l)>
#w = affine_map<(n, f, i, j, c, k, l) -> (f, c, k, l)>
#y = affine_map<(n, f, i, j, c, k, l) -> (n, f, i, j)>
func.func @main(%x: tensor<1x4x6x6xf32>, %w: tensor<3x4x3x3xf32>) -> tensor<1x3x6x6xf32> {
  %e = tensor.empty() : tensor<1x4x6x6xf32>
  %a = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x6x6xf32>) outs(%e : tensor<1x4x6x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.tanh %p : f32
    linalg.yield %t : f32
  } -> tensor<1x4x6x6xf32>
  %b = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    %z = arith.constant 0.000000e+00 : f32
    tensor.yield %z : f32
  } : tensor<1x4x6x6xf32> to tensor<1x4x8x8xf32>
  %c = arith.constant 0.000000e+00 : f32
  %f = tensor.empty() : tensor<1x3x6x6xf32>
  %g = linalg.fill ins(%c : f32) outs(%f : tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%b, %w : tensor<1x4x8x8xf32>, tensor<3x4x3x3xf32>) outs(%g : tensor<1x3x6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x3x6x6xf32>
  func.return %y : tensor<1x3x6x6xf32>
}

// -----

// An elementwise op reads it once: all is one rOperator.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[y:%.*]] = task.launch @map_0(%x, %r)
// CHECK-NEXT:    func.return [[y]]
#v = affine_map<(a) -> (a)>
func.func @main(%x: tensor<6xf32>, %r: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<6xf32>
  %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.tanh %p : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  %b = tensor.pad %a low[1] high[1] {
  ^bb0(%i: index):
    %z = arith.constant 0.000000e+00 : f32
    tensor.yield %z : f32
  } : tensor<6xf32> to tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]} ins(%b, %r : tensor<8xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
