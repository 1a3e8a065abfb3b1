// RUN: irkit-opt %s -p 'form-roperators{apart=true}' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p form-roperators --check-semantics | filecheck %s --check-prefix=FUSED
// RUN: irkit-opt %s -p 'form-roperators{apart=true}' --remarks=missed -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK

// What has several results is computed apart from the product, which one that has one is not.
// CHECK:       func.func @main
// CHECK-NEXT:    %[[H:.*]] = task.launch @gemm_0(%x, %w)
// CHECK-NEXT:    %{{.*}}, %{{.*}} = task.launch @map_0(%[[H]])
// CHECK:       func.func @one
// CHECK-NEXT:    %{{.*}} = task.launch @gemm_1(%x, %w)
// CHECK-NEXT:    func.return
// FUSED:       func.func @main
// FUSED-NEXT:    %{{.*}}, %{{.*}} = task.launch @gemm_0(%x, %w)
// FUSED-NEXT:    func.return
// REMARK:      remark: [missed] form-roperators/FuseEpilogue: {{.*}}what has several results is to be apart
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  %t, %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<4x4xf32>) outs(%e, %e : tensor<4x4xf32>, tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32, %q: f32):
    %s = math.tanh %a : f32
    %m = arith.negf %a : f32
    linalg.yield %s, %m : f32, f32
  } -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %t, %n : tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @one(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.tanh %a : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %t : tensor<4x4xf32>
}
