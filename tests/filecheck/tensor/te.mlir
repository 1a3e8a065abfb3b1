// RUN: irkit-opt %s --verify-roundtrip | filecheck %s

func.func @main(%x: tensor<?x4xf32>, %i: tensor<2xi64>, %j: tensor<?x2xi64>) -> (tensor<?xi64>, tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xf32>) {
  // CHECK: %a = te.argmax %x : (tensor<?x4xf32>) -> tensor<?xi64>
  %a = te.argmax %x : (tensor<?x4xf32>) -> tensor<?xi64>
  // CHECK-NEXT: %b = te.softmax %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = te.softmax %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %c = te.gather %x, %i {axis = 1 : i64} : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  %c = te.gather %x, %i {axis = 1 : i64} : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  // CHECK-NEXT: %d = te.gather_elements %x, %j {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?x2xf32>
  %d = te.gather_elements %x, %j {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?x2xf32>
  // CHECK-NEXT: %e = te.layer_norm %x {epsilon = 1.000000e-05 : f64, centred = false} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %e = te.layer_norm %x {epsilon = 1.0e-5 : f64, centred = false} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %f = te.top_k %x {k = 3 : i64, largest = false} : (tensor<?x4xf32>) -> tensor<?x3xi64>
  %f = te.top_k %x {k = 3 : i64, largest = false} : (tensor<?x4xf32>) -> tensor<?x3xi64>
  return %a, %b, %c, %d : tensor<?xi64>, tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xf32>
}

func.func @nibbles(%x: tensor<3x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) -> tensor<3x100xf32> {
  // CHECK: %y = te.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  %y = te.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  return %y : tensor<3x100xf32>
}

func.func @gemvt(%a: tensor<5x4xf64>, %x: tensor<4xf64>, %r: tensor<5xf64>) -> (tensor<2x7xf64>, tensor<5x5xf64>) {
  // CHECK: %y = te.gemvt %a, %x, %r {parts = 2 : i64} : (tensor<5x4xf64>, tensor<4xf64>, tensor<5xf64>) -> tensor<2x7xf64>
  %y = te.gemvt %a, %x, %r {parts = 2 : i64} : (tensor<5x4xf64>, tensor<4xf64>, tensor<5xf64>) -> tensor<2x7xf64>
  // CHECK-NEXT: %z = te.gemvt %a, %x {parts = 5 : i64} : (tensor<5x4xf64>, tensor<4xf64>) -> tensor<5x5xf64>
  %z = te.gemvt %a, %x {parts = 5 : i64} : (tensor<5x4xf64>, tensor<4xf64>) -> tensor<5x5xf64>
  return %y, %z : tensor<2x7xf64>, tensor<5x5xf64>
}

func.func @forest(%x: tensor<?x4xf32>, %feature: tensor<5x3xi32>, %threshold: tensor<5x3xf32>, %nan_left: tensor<5x3xi1>, %value: tensor<5x4x1xf64>, %output: tensor<5xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // CHECK: %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = 2 : i64} : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

func.func @symmetric_forest(%x: tensor<?x4xf32>, %feature: tensor<5x3xi32>, %threshold: tensor<5x3xf32>, %nan_left: tensor<5x3xi1>, %value: tensor<5x4x1xf64>, %output: tensor<5xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // CHECK: %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = 2 : i64, symmetric} :
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = 2 : i64, symmetric}
    : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

func.func @packed_forest(%x: tensor<?x4xf64>, %nodes: tensor<10x4xi32>, %value: tensor<10x3xf32>, %root: tensor<2xi32>, %base: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "lt", depth = 2 : i64} : (tensor<?x4xf64>, tensor<10x4xi32>, tensor<10x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "lt", depth = 2 : i64}
    : (tensor<?x4xf64>, tensor<10x4xi32>, tensor<10x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<3xf32>) -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

func.func @heap_forest(%x: tensor<?x4xf32>, %nodes: tensor<2x4x2xi32>, %value: tensor<2x4x3xf32>, %output: tensor<2xi32>, %base: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "lt", depth = 2 : i64} : (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x3xf32>, tensor<2xi32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "lt", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x3xf32>, tensor<2xi32>, tensor<3xf32>) -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

func.func @attention(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x2xf32>) -> tensor<3x2x2xf32> {
  // CHECK: %y = te.attention %q, %k, %v {scale = 5.000000e-01 : f64, causal = 0 : i64, permutation = array<i64: 1, 0, 2>, fastmath = #arith.fastmath<afn>} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x2xf32>) -> tensor<3x2x2xf32>
  %y = te.attention %q, %k, %v {scale = 0.5 : f64, causal = 0 : i64, permutation = array<i64: 1, 0, 2>, fastmath = #arith.fastmath<afn>}
    : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x2xf32>) -> tensor<3x2x2xf32>
  return %y : tensor<3x2x2xf32>
}

func.func @scaled(%x: tensor<70x12xf32>) -> tensor<70x12xf32> {
  // CHECK: %p = te.pack %x {precision = "scaled", terms = 0 : i64, depth = 70 : i64} : (tensor<70x12xf32>) -> tensor<3x2x2x8x64xf16>
  %p = te.pack %x {precision = "scaled", terms = 0 : i64, depth = 70 : i64} : (tensor<70x12xf32>) -> tensor<3x2x2x8x64xf16>
  // CHECK-NEXT: %y = te.prepacked %x, %p {precision = "scaled", terms = 0 : i64, depth = 70 : i64} : (tensor<70x12xf32>, tensor<3x2x2x8x64xf16>) -> tensor<70x12xf32>
  %y = te.prepacked %x, %p {precision = "scaled", terms = 0 : i64, depth = 70 : i64} : (tensor<70x12xf32>, tensor<3x2x2x8x64xf16>) -> tensor<70x12xf32>
  return %y : tensor<70x12xf32>
}

func.func @packed(%x: tensor<4x25x40xf32>) -> tensor<4x25x40xf32> {
  // CHECK: %p = te.pack %x {precision = "float32", terms = 1 : i64, depth = 40 : i64} : (tensor<4x25x40xf32>) -> tensor<2x3x13x8x32xbf16>
  %p = te.pack %x {precision = "float32", terms = 1 : i64, depth = 40 : i64} : (tensor<4x25x40xf32>) -> tensor<2x3x13x8x32xbf16>
  // CHECK-NEXT: %y = te.prepacked %x, %p {precision = "float32", terms = 1 : i64, depth = 40 : i64} : (tensor<4x25x40xf32>, tensor<2x3x13x8x32xbf16>) -> tensor<4x25x40xf32>
  %y = te.prepacked %x, %p {precision = "float32", terms = 1 : i64, depth = 40 : i64} : (tensor<4x25x40xf32>, tensor<2x3x13x8x32xbf16>) -> tensor<4x25x40xf32>
  return %y : tensor<4x25x40xf32>
}

func.func @rows(%x: tensor<?x10xf32>, %scale: tensor<10xf32>) -> (tensor<?x10xf32>, tensor<?xf32>) {
  // CHECK: %y = te.rowwise %x, %scale [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] {
  // CHECK-NEXT: ^bb0(%0: f32, %1: f32):
  // CHECK-NEXT: %2 = te.row_reduce %0 {kind = "add"} : f32
  // CHECK-NEXT: %3 = arith.divf %0, %2 : f32
  // CHECK-NEXT: %4 = arith.mulf %3, %1 : f32
  // CHECK-NEXT: te.yield %4 : f32
  // CHECK-NEXT: } : (tensor<?x10xf32>, tensor<10xf32>) -> tensor<?x10xf32>
  %y = te.rowwise %x, %scale [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] {
  ^bb0(%0: f32, %1: f32):
    %2 = te.row_reduce %0 {kind = "add"} : f32
    %3 = arith.divf %0, %2 : f32
    %4 = arith.mulf %3, %1 : f32
    te.yield %4 : f32
  } : (tensor<?x10xf32>, tensor<10xf32>) -> tensor<?x10xf32>
  // CHECK: } : (tensor<?x10xf32>) -> tensor<?xf32>
  %z = te.rowwise %x [affine_map<(d0, d1) -> (d0, d1)>] {
  ^bb0(%5: f32):
    %6 = te.row_reduce %5 {kind = "max"} : f32
    te.yield %6 : f32
  } : (tensor<?x10xf32>) -> tensor<?xf32>
  return %y, %z : tensor<?x10xf32>, tensor<?xf32>
}
