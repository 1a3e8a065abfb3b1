// RUN: irkit-opt %s -p form-roperators --check-semantics --split-input-file | filecheck %s

// A root with its epilogue is one rOperator; the constant that both bodies share goes into it.
// CHECK:      task.roperator @gemm_0(%{{.*}}: tensor<8x4xf32>, %{{.*}}: tensor<4x6xf32>) -> tensor<8x6xf32> attributes {sources = "linalg.generic"}
// CHECK:        arith.mulf
// CHECK:        arith.maximumf
// CHECK:        task.yield
// CHECK-NOT:  task.roperator
// CHECK-LABEL: func.func @main
// CHECK-NEXT:   [[y:%.*]] = task.launch @gemm_0(%x, %w)
// CHECK-NEXT:   func.return [[y]]
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %e = tensor.empty() : tensor<8x6xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %acc, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x6xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x6xf32>) outs(%e : tensor<8x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.maximumf %p, %zero : f32
    linalg.yield %s : f32
  } -> tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// Equal bodies are one symbol; what two ops read is computed once, between them.
// CHECK:      task.roperator @map_0
// CHECK:        math.exp
// CHECK-NOT:  task.roperator
// CHECK-LABEL: func.func @main
// CHECK-NEXT:   [[a:%.*]] = task.launch @map_0(%x)
// CHECK-NEXT:   [[b:%.*]] = task.launch @map_0([[a]])
// CHECK-NEXT:   func.return [[a]], [[b]]
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A slice that is one run of bytes is a view and stays; one that is not is copied.
// CHECK:      task.roperator @map_0(%{{.*}}: tensor<4x6xf32>) -> tensor<4x2xf32>
// CHECK:        tensor.extract_slice
// CHECK:      task.roperator @map_1(%{{.*}}: tensor<2x6xf32>) -> tensor<2x6xf32>
// CHECK-NOT:    tensor.extract_slice
// CHECK-LABEL: func.func @main
// CHECK:        [[a:%.*]] = tensor.extract_slice %x
// CHECK-NEXT:   [[b:%.*]] = task.launch @map_0(%x)
// CHECK-NEXT:   [[c:%.*]] = task.launch @map_1([[a]])
// CHECK-NEXT:   func.return [[c]], [[b]]
func.func @main(%x: tensor<4x6xf32>) -> (tensor<2x6xf32>, tensor<4x2xf32>) {
  %0 = tensor.extract_slice %x[1, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  %1 = tensor.extract_slice %x[0, 2] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
  return %0, %1 : tensor<2x6xf32>, tensor<4x2xf32>
}

// -----

// What is done already is left alone.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[y:%.*]] = task.launch @same(%x)
// CHECK-NEXT:    func.return [[y]]
task.roperator @same(%a : tensor<8xf32>) -> tensor<8xf32> {
  task.yield %a : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = task.launch @same(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A slice that is no run of bytes, read by two: each takes it from where it lies.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:   [[a:%.*]] = task.launch @map_0(%x) : (tensor<4x6xf32>) -> tensor<4x2xf32>
// CHECK-NEXT:   [[b:%.*]] = task.launch @map_1(%x) : (tensor<4x6xf32>) -> tensor<4x2xf32>
// CHECK-NEXT:   func.return [[a]], [[b]]
func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %s = tensor.extract_slice %x[0, 1] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
  %e = tensor.empty() : tensor<4x2xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.exp %p : f32
    linalg.yield %t : f32
  } -> tensor<4x2xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.absf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// Equal sums are one launch, though each starts from a fill of its own.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:   [[s:%.*]] = task.launch @reduce_0(%x)
// CHECK-NEXT:   [[y:%.*]] = task.launch @map_0([[s]])
// CHECK-NEXT:   func.return [[s]], [[y]]
func.func @main(%x: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4xf32>) outs(%g : tensor<8xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%1 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.exp %p : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}
