// RUN: irkit-opt %s -p form-roperators | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators{device="h200"}' | filecheck %s --check-prefix=GPU

// A matrix that is made for one column is not stored, on a CPU.
// CHECK-LABEL: func.func @column
// CHECK-NEXT: task.launch @gemm_0
// CHECK-NOT: task.launch
// GPU-LABEL: func.func @column
// GPU: task.launch @map_0
// GPU-NEXT: task.launch @gemm_0
// Nor is one for a row.
// CHECK-LABEL: func.func @row
// CHECK-NEXT: task.launch @gemm_1
// CHECK-NOT: task.launch
// Two columns read each element twice, and a division takes longer than the memory.
// CHECK-LABEL: func.func @two
// CHECK: task.launch @map_0
// CHECK-NEXT: task.launch @gemm_2
// CHECK-LABEL: func.func @divided
// CHECK: task.launch @map_1
// CHECK-NEXT: task.launch @gemm_

func.func @column(%x: tensor<40x20xf32>, %d: tensor<40xf32>, %w: tensor<20x1xf32>) -> tensor<40x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x20xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %d : tensor<40x20xf32>, tensor<40xf32>) outs(%e : tensor<40x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<40x20xf32>
  %o = tensor.empty() : tensor<40x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x1xf32>) -> tensor<40x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v, %w : tensor<40x20xf32>, tensor<20x1xf32>) outs(%f : tensor<40x1xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<40x1xf32>
  func.return %r : tensor<40x1xf32>
}

func.func @row(%x: tensor<40x20xf32>, %d: tensor<40xf32>, %w: tensor<1x40xf32>) -> tensor<1x20xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x20xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %d : tensor<40x20xf32>, tensor<40xf32>) outs(%e : tensor<40x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<40x20xf32>
  %o = tensor.empty() : tensor<1x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x20xf32>) -> tensor<1x20xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %v : tensor<1x40xf32>, tensor<40x20xf32>) outs(%f : tensor<1x20xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x20xf32>
  func.return %r : tensor<1x20xf32>
}

func.func @two(%x: tensor<40x20xf32>, %d: tensor<40xf32>, %w: tensor<20x2xf32>) -> tensor<40x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x20xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %d : tensor<40x20xf32>, tensor<40xf32>) outs(%e : tensor<40x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<40x20xf32>
  %o = tensor.empty() : tensor<40x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x2xf32>) -> tensor<40x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v, %w : tensor<40x20xf32>, tensor<20x2xf32>) outs(%f : tensor<40x2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<40x2xf32>
  func.return %r : tensor<40x2xf32>
}

func.func @divided(%x: tensor<40x20xf32>, %d: tensor<40xf32>, %w: tensor<20x1xf32>) -> tensor<40x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x20xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %d : tensor<40x20xf32>, tensor<40xf32>) outs(%e : tensor<40x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.divf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<40x20xf32>
  %o = tensor.empty() : tensor<40x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x1xf32>) -> tensor<40x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v, %w : tensor<40x20xf32>, tensor<20x1xf32>) outs(%f : tensor<40x1xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<40x1xf32>
  func.return %r : tensor<40x1xf32>
}
