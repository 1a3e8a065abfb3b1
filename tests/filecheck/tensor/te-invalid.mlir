// RUN: irkit-opt %s --split-input-file --verify-diagnostics

func.func @argmax(%x: tensor<?x4xf32>) -> tensor<?x4xi64> {
  // expected-error@+1 {{'te.argmax' expects result of type tensor<?xi64>, got tensor<?x4xi64>}}
  %y = te.argmax %x : (tensor<?x4xf32>) -> tensor<?x4xi64>
  return %y : tensor<?x4xi64>
}

// -----

func.func @top_k(%x: tensor<?x4xf32>) -> tensor<?x5xi64> {
  // expected-error@+1 {{'te.top_k' expects 0 < k <= 4, got k = 5}}
  %y = te.top_k %x {k = 5 : i64, largest = true} : (tensor<?x4xf32>) -> tensor<?x5xi64>
  return %y : tensor<?x5xi64>
}

// -----

func.func @top_k(%x: tensor<?x4xf32>) -> tensor<?x4xi64> {
  // expected-error@+1 {{'te.top_k' expects result of type tensor<?x2xi64>, got tensor<?x4xi64>}}
  %y = te.top_k %x {k = 2 : i64, largest = true} : (tensor<?x4xf32>) -> tensor<?x4xi64>
  return %y : tensor<?x4xi64>
}

// -----

func.func @softmax(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error@+1 {{'te.softmax' expects a floating-point operand, got tensor<4xi32>}}
  %y = te.softmax %x : (tensor<4xi32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// -----

func.func @forest(%x: tensor<?x4xf32>, %feature: tensor<5x3xi32>, %threshold: tensor<5x3xf32>, %nan_left: tensor<5x3xi1>, %value: tensor<5x4x1xf64>, %output: tensor<5xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.perfect_forest' expects feature of type tensor<5x7xi32>, got tensor<5x3xi32>}}
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = 3 : i64}
    : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @heap_forest_doubles(%x: tensor<?x4xf64>, %nodes: tensor<2x4x2xi32>, %value: tensor<2x4x1xf64>, %output: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.heap_forest' expects x of f32, got tensor<?x4xf64>}}
  %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "le", depth = 2 : i64}
    : (tensor<?x4xf64>, tensor<2x4x2xi32>, tensor<2x4x1xf64>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @heap_forest_depth(%x: tensor<?x4xf32>, %nodes: tensor<2x4x2xi32>, %value: tensor<2x4x1xf64>, %output: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.heap_forest' expects nodes of type tensor<2x8x2xi32>, got tensor<2x4x2xi32>}}
  %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "le", depth = 3 : i64}
    : (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x1xf64>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @heap_forest_value(%x: tensor<?x4xf32>, %nodes: tensor<2x4x2xi32>, %value: tensor<2x4x2xf64>, %output: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.heap_forest' expects value of 2x4x(1 or 3) f64, got tensor<2x4x2xf64>}}
  %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "le", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x2xf64>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @packed_forest_halves(%x: tensor<?x4xf16>, %nodes: tensor<10x4xi32>, %value: tensor<10x1xf64>, %root: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.packed_forest' expects x of f32 or f64, got tensor<?x4xf16>}}
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "le", depth = 3 : i64}
    : (tensor<?x4xf16>, tensor<10x4xi32>, tensor<10x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @packed_forest_nodes(%x: tensor<?x4xf32>, %nodes: tensor<10x3xi32>, %value: tensor<10x1xf64>, %root: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.packed_forest' expects nodes of type tensor<10x4xi32>, got tensor<10x3xi32>}}
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "le", depth = 3 : i64}
    : (tensor<?x4xf32>, tensor<10x3xi32>, tensor<10x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @packed_forest_value(%x: tensor<?x4xf32>, %nodes: tensor<10x4xi32>, %value: tensor<10x2xf64>, %root: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.packed_forest' expects value of 10x(1 or 3) f64, got tensor<10x2xf64>}}
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "le", depth = 3 : i64}
    : (tensor<?x4xf32>, tensor<10x4xi32>, tensor<10x2xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @packed_forest_comparison(%x: tensor<?x4xf32>, %nodes: tensor<10x4xi32>, %value: tensor<10x1xf64>, %root: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.packed_forest' expects a comparison among le, lt, got 'gt'}}
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "gt", depth = 3 : i64}
    : (tensor<?x4xf32>, tensor<10x4xi32>, tensor<10x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @perfect_forest_comparison(%x: tensor<?x4xf32>, %feature: tensor<5x3xi32>, %threshold: tensor<5x3xf32>, %nan_left: tensor<5x3xi1>, %value: tensor<5x4x1xf64>, %output: tensor<5xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.perfect_forest' expects a comparison among le, lt, got 'gt'}}
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "gt", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @perfect_forest_negative_depth(%x: tensor<?x4xf32>, %feature: tensor<5x3xi32>, %threshold: tensor<5x3xf32>, %nan_left: tensor<5x3xi1>, %value: tensor<5x4x1xf64>, %output: tensor<5xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.perfect_forest' expects 0 <= depth < 2147483648, got depth = -1}}
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = -1 : i64}
    : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @perfect_forest_deep(%x: tensor<?x4xf32>, %feature: tensor<5x3xi32>, %threshold: tensor<5x3xf32>, %nan_left: tensor<5x3xi1>, %value: tensor<5x4x1xf64>, %output: tensor<5xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.perfect_forest' expects 0 <= depth <= 30, got depth = 100000}}
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base {comparison = "le", depth = 100000 : i64}
    : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @heap_forest_comparison(%x: tensor<?x4xf32>, %nodes: tensor<2x4x2xi32>, %value: tensor<2x4x1xf64>, %output: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.heap_forest' expects a comparison among le, lt, got 'gt'}}
  %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "gt", depth = 2 : i64}
    : (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x1xf64>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @heap_forest_negative_depth(%x: tensor<?x4xf32>, %nodes: tensor<2x4x2xi32>, %value: tensor<2x4x1xf64>, %output: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.heap_forest' expects 0 <= depth < 2147483648, got depth = -1}}
  %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "le", depth = -1 : i64}
    : (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x1xf64>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @packed_forest_negative_depth(%x: tensor<?x4xf32>, %nodes: tensor<10x4xi32>, %value: tensor<10x1xf64>, %root: tensor<2xi32>, %base: tensor<3xf64>) -> tensor<?x3xf64> {
  // expected-error@+1 {{'te.packed_forest' expects 0 <= depth < 2147483648, got depth = -1}}
  %y = te.packed_forest %x, %nodes, %value, %root, %root, %base {comparison = "le", depth = -1 : i64}
    : (tensor<?x4xf32>, tensor<10x4xi32>, tensor<10x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>
}

// -----

func.func @attention(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x2xf32>) -> tensor<3x2x2xf32> {
  // expected-error@+1 {{'te.attention' expects a permutation of 3 dimensions that ends in 2, got [2, 1, 0]}}
  %y = te.attention %q, %k, %v {scale = 0.5 : f64, permutation = array<i64: 2, 1, 0>} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x2xf32>) -> tensor<3x2x2xf32>
  return %y : tensor<3x2x2xf32>
}

// -----

func.func @packed_for_what(%x: tensor<8x32xf32>) -> tensor<1x1x1x8x32xf32> {
  // expected-error@+1 {{'te.pack' expects a precision of float32, tf32, bf16, f16, scaled, got ieee}}
  %p = te.pack %x {precision = "ieee", terms = 1 : i64, depth = 32 : i64} : (tensor<8x32xf32>) -> tensor<1x1x1x8x32xf32>
  return %p : tensor<1x1x1x8x32xf32>
}

// -----

func.func @packed_along_what(%x: tensor<8x32xf32>) -> tensor<1x1x1x8x32xf32> {
  // expected-error@+1 {{'te.pack' expects terms of dimension 0 or 1, got 2}}
  %p = te.pack %x {precision = "tf32", terms = 2 : i64, depth = 32 : i64} : (tensor<8x32xf32>) -> tensor<1x1x1x8x32xf32>
  return %p : tensor<1x1x1x8x32xf32>
}

// -----

func.func @packed_rows(%x: tensor<8x32xf32>) -> tensor<1x1x1x8x32xf32> {
  // expected-error@+1 {{'te.pack' expects rows of depth 30, got tensor<8x32xf32>}}
  %p = te.pack %x {precision = "tf32", terms = 1 : i64, depth = 30 : i64} : (tensor<8x32xf32>) -> tensor<1x1x1x8x32xf32>
  return %p : tensor<1x1x1x8x32xf32>
}

// -----

func.func @packed_doubles(%x: tensor<8x32xf64>) -> tensor<1x1x1x8x32xf32> {
  // expected-error@+1 {{'te.pack' expects a matrix of f32, f16 or bf16 whose size is known, got tensor<8x32xf64>}}
  %p = te.pack %x {precision = "tf32", terms = 1 : i64, depth = 32 : i64} : (tensor<8x32xf64>) -> tensor<1x1x1x8x32xf32>
  return %p : tensor<1x1x1x8x32xf32>
}

// -----

func.func @packed_otherwise(%x: tensor<8x32xf32>, %p: tensor<1x1x1x8x32xf32>) -> tensor<8x32xf32> {
  // expected-error@+1 {{'te.prepacked' expects packed terms of type tensor<1x3x1x8x32xbf16>, got tensor<1x1x1x8x32xf32>}}
  %y = te.prepacked %x, %p {precision = "float32", terms = 1 : i64, depth = 32 : i64} : (tensor<8x32xf32>, tensor<1x1x1x8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

func.func @rows(%x: tensor<4x5xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'te.rowwise' expects a body that yields what is alike in a row, got what is not}}
  %y = te.rowwise %x [affine_map<(d0, d1) -> (d0, d1)>] {
  ^bb0(%0: f32):
    te.yield %0 : f32
  } : (tensor<4x5xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @rows(%x: tensor<5xf32>) -> tensor<4x5xf32> {
  // expected-error@+1 {{'te.rowwise' expects an operand that is read place by place, got none}}
  %y = te.rowwise %x [affine_map<(d0, d1) -> (d1)>] {
  ^bb0(%0: f32):
    te.yield %0 : f32
  } : (tensor<5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @rows(%x: tensor<4x5xf32>, %z: tensor<3xf32>) -> tensor<4x5xf32> {
  // expected-error@+1 {{'te.rowwise' expects an operand of rows [4, 5] that (d0, d1) -> (d1) reads, got tensor<3xf32>}}
  %y = te.rowwise %x, %z [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] {
  ^bb0(%0: f32, %1: f32):
    te.yield %0 : f32
  } : (tensor<4x5xf32>, tensor<3xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @rows(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %y = te.rowwise %x [affine_map<(d0, d1) -> (d0, d1)>] {
  ^bb0(%0: f32):
    // expected-error@+1 {{'te.row_reduce' expects one of add, max, min, got 'mul'}}
    %1 = te.row_reduce %0 {kind = "mul"} : f32
    te.yield %1 : f32
  } : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @gemvt(%a: tensor<4xf64>, %x: tensor<4xf64>) -> tensor<2x6xf64> {
  // expected-error@+1 {{'te.gemvt' expects a matrix of rank 2, got tensor<4xf64>}}
  %y = te.gemvt %a, %x {parts = 2 : i64} : (tensor<4xf64>, tensor<4xf64>) -> tensor<2x6xf64>
  return %y : tensor<2x6xf64>
}

// -----

func.func @gemvt(%a: tensor<?x4xf64>, %x: tensor<4xf64>) -> tensor<2x6xf64> {
  // expected-error@+1 {{'te.gemvt' expects a matrix of known extents, got tensor<?x4xf64>}}
  %y = te.gemvt %a, %x {parts = 2 : i64} : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<2x6xf64>
  return %y : tensor<2x6xf64>
}

// -----

func.func @gemvt(%a: tensor<5x4xf64>, %x: tensor<5xf64>) -> tensor<2x7xf64> {
  // expected-error@+1 {{'te.gemvt' expects a vector of 4 elements, got tensor<5xf64>}}
  %y = te.gemvt %a, %x {parts = 2 : i64} : (tensor<5x4xf64>, tensor<5xf64>) -> tensor<2x7xf64>
  return %y : tensor<2x7xf64>
}

// -----

func.func @gemvt(%a: tensor<5x4xf64>, %x: tensor<4xf64>, %r: tensor<4xf64>) -> tensor<2x7xf64> {
  // expected-error@+1 {{'te.gemvt' expects a vector of 5 elements, got tensor<4xf64>}}
  %y = te.gemvt %a, %x, %r {parts = 2 : i64} : (tensor<5x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x7xf64>
  return %y : tensor<2x7xf64>
}

// -----

func.func @gemvt(%a: tensor<5x4xf64>, %x: tensor<4xf64>) -> tensor<6x5xf64> {
  // expected-error@+1 {{'te.gemvt' expects 0 < parts <= 5, got parts = 6}}
  %y = te.gemvt %a, %x {parts = 6 : i64} : (tensor<5x4xf64>, tensor<4xf64>) -> tensor<6x5xf64>
  return %y : tensor<6x5xf64>
}

// -----

func.func @gemvt(%a: tensor<5x4xf64>, %x: tensor<4xf64>) -> tensor<2x6xf64> {
  // expected-error@+1 {{'te.gemvt' expects result of type tensor<2x7xf64>, got tensor<2x6xf64>}}
  %y = te.gemvt %a, %x {parts = 2 : i64} : (tensor<5x4xf64>, tensor<4xf64>) -> tensor<2x6xf64>
  return %y : tensor<2x6xf64>
}

// -----

func.func @gemvt(%a: tensor<5x4xf64>, %x: tensor<4xf32>) -> tensor<2x7xf64> {
  // expected-error@+1 {{'te.gemvt' expects operands of one element type (f64), got f32}}
  %y = te.gemvt %a, %x {parts = 2 : i64} : (tensor<5x4xf64>, tensor<4xf32>) -> tensor<2x7xf64>
  return %y : tensor<2x7xf64>
}

// -----

func.func @gemvt(%a: tensor<5x4xi32>, %x: tensor<4xi32>) -> tensor<2x7xi32> {
  // expected-error@+1 {{'te.gemvt' expects elements of f32, f64, got tensor<5x4xi32>}}
  %y = te.gemvt %a, %x {parts = 2 : i64} : (tensor<5x4xi32>, tensor<4xi32>) -> tensor<2x7xi32>
  return %y : tensor<2x7xi32>
}

// -----

func.func @nibbles(%x: tensor<2x3x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) -> tensor<2x3x100xf32> {
  // expected-error@+1 {{'te.nibble_matmul' expects x of rank 2, got tensor<2x3x80xf32>}}
  %y = te.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<2x3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<2x3x100xf32>
  return %y : tensor<2x3x100xf32>
}

// -----

func.func @nibbles(%x: tensor<?x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) -> tensor<?x100xf32> {
  // expected-error@+1 {{'te.nibble_matmul' expects x of known extents, got tensor<?x80xf32>}}
  %y = te.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<?x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<?x100xf32>
  return %y : tensor<?x100xf32>
}
