// RUN: irkit-opt %s -p 'form-roperators,partition-rtasks{device=h200}' --split-input-file | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators,partition-rtasks{device=h200}' --split-input-file --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'form-roperators,partition-rtasks{device=h200},schedule-wavefront,pin-residents' --split-input-file | filecheck %s --check-prefix=SCHEDULE

// A cell whose weights are constants may be cut by rows, since a block keeps all of them.
// CHECK-LABEL: task.roperator @recurrent_cell_0(
// CHECK-SAME:  rkernel = "cell_rows.one_term_by1", grid = array<i64: 3, 1, 1>
// Then no step waits for another one.
// SCHEDULE:      [[a:%\S+]] = task.append @recurrent_cell_0 to [0:2] wave 0 reads(%x, %w, %start) writes({{%\S+}}) resident [1 at 0]
// SCHEDULE-NEXT: task.append @recurrent_cell_0 to [0:2] wave 1 reads({{%\S+}}, %w, %start) writes({{%\S+}}) resident [1 at 0]
// SCHEDULE-NEXT: task.append @recurrent_cell_0 to [0:2] wave 2 reads({{%\S+}}, %w, %start) writes({{%\S+}}) resident [1 at 0]

#x = affine_map<(b, u, g, k) -> (b, k)>
#w = affine_map<(b, u, g, k) -> (u, g, k)>
#s = affine_map<(b, u, g, k) -> (b, u, g)>
#first = affine_map<(b, u) -> (b, u, 0)>
#second = affine_map<(b, u) -> (b, u, 1)>
#all = affine_map<(b, u) -> (b, u)>
func.func @main(%x: tensor<3x64xf32>, %start: tensor<3x64x2xf32>) -> tensor<3x64xf32> {
  %w = arith.constant dense<0.5> : tensor<64x2x64xf32>
  %e = tensor.empty() : tensor<3x64xf32>
  %a0 = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x64xf32>, tensor<64x2x64xf32>) outs(%start : tensor<3x64x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x64x2xf32>
  %h0 = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%a0, %a0 : tensor<3x64x2xf32>, tensor<3x64x2xf32>) outs(%e : tensor<3x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x64xf32>
  %a1 = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%h0, %w : tensor<3x64xf32>, tensor<64x2x64xf32>) outs(%start : tensor<3x64x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x64x2xf32>
  %h1 = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%a1, %a1 : tensor<3x64x2xf32>, tensor<3x64x2xf32>) outs(%e : tensor<3x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x64xf32>
  %a2 = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%h1, %w : tensor<3x64xf32>, tensor<64x2x64xf32>) outs(%start : tensor<3x64x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x64x2xf32>
  %h2 = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%a2, %a2 : tensor<3x64x2xf32>, tensor<3x64x2xf32>) outs(%e : tensor<3x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x64xf32>
  func.return %h2 : tensor<3x64xf32>
}

// -----

// Weights that a caller gives, or that no block has room for, are shared out unit by unit.
// CHECK-LABEL: task.roperator @recurrent_cell_0(
// CHECK-NOT:   cell_rows
// CHECK-LABEL: task.roperator @recurrent_cell_1(
// CHECK-NOT:   cell_rows
// MISSED: OfferRKernels: {{.*}}cell_rows.one_term_by1: what it keeps is no constant
// MISSED: OfferRKernels: {{.*}}cell_rows.one_term_by1: 294912 bytes to keep, h200 has

#x = affine_map<(b, u, g, k) -> (b, k)>
#w = affine_map<(b, u, g, k) -> (u, g, k)>
#s = affine_map<(b, u, g, k) -> (b, u, g)>
#first = affine_map<(b, u) -> (b, u, 0)>
#second = affine_map<(b, u) -> (b, u, 1)>
#all = affine_map<(b, u) -> (b, u)>
func.func @main(%x: tensor<3x64xf32>, %w: tensor<64x2x64xf32>, %start: tensor<3x64x2xf32>, %more: tensor<3x192x2xf32>, %y: tensor<3x192xf32>) -> (tensor<3x64xf32>, tensor<3x192xf32>) {
  %e = tensor.empty() : tensor<3x64xf32>
  %a0 = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x64xf32>, tensor<64x2x64xf32>) outs(%start : tensor<3x64x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x64x2xf32>
  %h0 = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%a0, %a0 : tensor<3x64x2xf32>, tensor<3x64x2xf32>) outs(%e : tensor<3x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x64xf32>
  %v = arith.constant dense<0.5> : tensor<192x2x192xf32>
  %f = tensor.empty() : tensor<3x192xf32>
  %a1 = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%y, %v : tensor<3x192xf32>, tensor<192x2x192xf32>) outs(%more : tensor<3x192x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x192x2xf32>
  %h1 = linalg.generic {indexing_maps = [#first, #second, #all], iterator_types = ["parallel", "parallel"]} ins(%a1, %a1 : tensor<3x192x2xf32>, tensor<3x192x2xf32>) outs(%f : tensor<3x192xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x192xf32>
  func.return %h0, %h1 : tensor<3x64xf32>, tensor<3x192xf32>
}
