// RUN: irkit-opt %s -p fuse-elementwise --check-semantics --split-input-file | filecheck %s

// What is inserted into an array that is returned is read from there, slices of it as slices of the array: its one
// reader is the insertion, which stands before them.
#i = affine_map<(i) -> (i)>
func.func @main(%a: tensor<9xf64>, %b: tensor<9xf64>) -> (tensor<9xf64>, tensor<4xf64>, tensor<2xf64>) {
  %e = tensor.empty() : tensor<4xf64>
  %l = tensor.extract_slice %a[0] [4] [2] : tensor<9xf64> to tensor<4xf64>
  %s = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%l, %l : tensor<4xf64>, tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %t = arith.mulf %p, %q : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  %n = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%s : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%p: f64, %o: f64):
    %t = math.exp %p : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  %c = tensor.extract_slice %s[1] [2] [2] : tensor<4xf64> to tensor<2xf64>
  %w = tensor.insert_slice %s into %b[1] [4] [2] : tensor<4xf64> into tensor<9xf64>
  return %w, %n, %c : tensor<9xf64>, tensor<4xf64>, tensor<2xf64>
}
// CHECK-LABEL: func.func @main
// CHECK:         [[s:%.*]] = linalg.generic
// CHECK:         [[w:%.*]] = tensor.insert_slice [[s]] into %b[1] [4] [2]
// CHECK-NEXT:    [[r:%.*]] = tensor.extract_slice [[w]][1] [4] [2]
// CHECK-NEXT:    [[n:%.*]] = linalg.generic {{.*}} ins([[r]] :
// CHECK:         [[c:%.*]] = tensor.extract_slice [[w]][3] [2] [4]
// CHECK-NEXT:    func.return [[w]], [[n]], [[c]]

// -----

// An array that something else is inserted into at once is not needed as it is: what is inserted stays apart.
// CHECK-LABEL: func.func @main
// CHECK:         [[s:%.*]] = linalg.generic
// CHECK:         linalg.generic {{.*}} ins([[s]] :
#i = affine_map<(i) -> (i)>
func.func @main(%a: tensor<4xf64>, %b: tensor<9xf64>, %d: tensor<2xf64>) -> (tensor<9xf64>, tensor<4xf64>) {
  %e = tensor.empty() : tensor<4xf64>
  %s = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%a, %a : tensor<4xf64>, tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %t = arith.mulf %p, %q : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  %w = tensor.insert_slice %s into %b[1] [4] [1] : tensor<4xf64> into tensor<9xf64>
  %v = tensor.insert_slice %d into %w[2] [2] [1] : tensor<2xf64> into tensor<9xf64>
  %n = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%s : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%p: f64, %o: f64):
    %t = math.exp %p : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  return %v, %n : tensor<9xf64>, tensor<4xf64>
}
