// RUN: irkit-opt %s -p 'partition-rtasks{device="h200"},measure-library-calls' --remarks=missed -o %t.mlir 2>&1 | filecheck %s --check-prefix=ELSEWHERE
// RUN: not irkit-opt %s -p measure-library-calls 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: irkit-opt %s -p 'partition-rtasks{device="h200"},schedule-wavefront,plan-memory,verify-schedule' | filecheck %s --check-prefix=KEPT
// RUN: not irkit-opt %s -p 'partition-rtasks{device="cpu2"},measure-library-calls' 2>&1 | filecheck %s --check-prefix=NOGPU

// ELSEWHERE:  remark: [missed] measure-library-calls/MeasureLibraryCalls:
// EARLY:      error: pass 'measure-library-calls' requires the partitioned level
// KEPT:       task.roperator @product({{.*}}library = "cublaslt", library_cost = 5.000000e+02 : f64
// KEPT:       verified = "
// NOGPU:      library 'cublaslt': expected cublaslt, on a GPU
task.roperator @product(%a : tensor<64x32xf32>, %b : tensor<32x48xf32>) -> tensor<64x48xf32> attributes {library = "cublaslt", library_cost = 500.0 : f64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x48xf32>
  task.yield %y : tensor<64x48xf32>
}
func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x48xf32>) -> tensor<64x48xf32> {
  %y = task.launch @product(%x, %w) : (tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32>
  func.return %y : tensor<64x48xf32>
}
