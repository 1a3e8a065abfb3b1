// RUN: irkit-opt %s -p form-roperators | filecheck %s

// Four columns read an element of %x as often: it is widened where it is read.

// CHECK-LABEL: func.func @few
// CHECK-NEXT: task.launch @gemm_0
// CHECK-NOT: task.launch
// Five do not, and 16-bit floats may be what a rKernel of products reads.
// CHECK-LABEL: func.func @many
// CHECK: task.launch @map_0
// CHECK-NEXT: task.launch @gemm_1
// CHECK-LABEL: func.func @half
// CHECK: task.launch @map_1
// CHECK-NEXT: task.launch @gemm_2

func.func @few(%x: tensor<?x20xf32>, %w: tensor<20x4xf64>) -> tensor<?x4xf64> {
  %zero = arith.constant 0.0 : f64
  %i = arith.constant 0 : index
  %n = tensor.dim %x, %i : tensor<?x20xf32>
  %e = tensor.empty(%n) : tensor<?x20xf64>
  %v = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x20xf32>) outs(%e : tensor<?x20xf64>) {
  ^bb0(%a: f32, %b: f64):
    %c = arith.extf %a : f32 to f64
    linalg.yield %c : f64
  } -> tensor<?x20xf64>
  %o = tensor.empty(%n) : tensor<?x4xf64>
  %f = linalg.fill ins(%zero : f64) outs(%o : tensor<?x4xf64>) -> tensor<?x4xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v, %w : tensor<?x20xf64>, tensor<20x4xf64>) outs(%f : tensor<?x4xf64>) {
  ^bb0(%a: f64, %b: f64, %s: f64):
    %p = arith.mulf %a, %b : f64
    %t = arith.addf %s, %p : f64
    linalg.yield %t : f64
  } -> tensor<?x4xf64>
  func.return %r : tensor<?x4xf64>
}

func.func @many(%x: tensor<?x20xf32>, %w: tensor<20x5xf64>) -> tensor<?x5xf64> {
  %zero = arith.constant 0.0 : f64
  %i = arith.constant 0 : index
  %n = tensor.dim %x, %i : tensor<?x20xf32>
  %e = tensor.empty(%n) : tensor<?x20xf64>
  %v = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x20xf32>) outs(%e : tensor<?x20xf64>) {
  ^bb0(%a: f32, %b: f64):
    %c = arith.extf %a : f32 to f64
    linalg.yield %c : f64
  } -> tensor<?x20xf64>
  %o = tensor.empty(%n) : tensor<?x5xf64>
  %f = linalg.fill ins(%zero : f64) outs(%o : tensor<?x5xf64>) -> tensor<?x5xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v, %w : tensor<?x20xf64>, tensor<20x5xf64>) outs(%f : tensor<?x5xf64>) {
  ^bb0(%a: f64, %b: f64, %s: f64):
    %p = arith.mulf %a, %b : f64
    %t = arith.addf %s, %p : f64
    linalg.yield %t : f64
  } -> tensor<?x5xf64>
  func.return %r : tensor<?x5xf64>
}

func.func @half(%x: tensor<?x20xf16>, %w: tensor<20x1xf32>) -> tensor<?x1xf32> {
  %zero = arith.constant 0.0 : f32
  %i = arith.constant 0 : index
  %n = tensor.dim %x, %i : tensor<?x20xf16>
  %e = tensor.empty(%n) : tensor<?x20xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x20xf16>) outs(%e : tensor<?x20xf32>) {
  ^bb0(%a: f16, %b: f32):
    %c = arith.extf %a : f16 to f32
    linalg.yield %c : f32
  } -> tensor<?x20xf32>
  %o = tensor.empty(%n) : tensor<?x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x1xf32>) -> tensor<?x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v, %w : tensor<?x20xf32>, tensor<20x1xf32>) outs(%f : tensor<?x1xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x1xf32>
  func.return %r : tensor<?x1xf32>
}
