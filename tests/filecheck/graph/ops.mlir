// Every graph op: custom and generic form, both ways.
// RUN: irkit-opt %s | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: irkit-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: func.func @abs(
// CHECK-NEXT:    %y = graph.abs %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.abs"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @abs(%x: tensor<?x8xf32>) {
  %y = graph.abs %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @add(
// CHECK-NEXT:    %y = graph.add %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.add"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @add(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.add %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @and(
// CHECK-NEXT:    %y = graph.and %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
// GENERIC:       %y = "graph.and"(%p, %q) : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
func.func @and(%p: tensor<?x8xi1>, %q: tensor<?x8xi1>) {
  %y = graph.and %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
  func.return
}

// CHECK-LABEL: func.func @argmax(
// CHECK-NEXT:    %y = graph.argmax %x {axis = 1 : i64, keepdims = false} : (tensor<?x10xf64>) -> tensor<?xi64>
// GENERIC:       %y = "graph.argmax"(%x) <{axis = 1 : i64, keepdims = false}> : (tensor<?x10xf64>) -> tensor<?xi64>
func.func @argmax(%x: tensor<?x10xf64>) {
  %y = graph.argmax %x {axis = 1 : i64, keepdims = false} : (tensor<?x10xf64>) -> tensor<?xi64>
  func.return
}

// CHECK-LABEL: func.func @average_pool(
// CHECK-NEXT:    %y = graph.average_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, count_include_pad = false} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
// GENERIC:       %y = "graph.average_pool"(%x) <{kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, count_include_pad = false}> : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
func.func @average_pool(%x: tensor<1x4x8x8xf32>) {
  %y = graph.average_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
      pads = array<i64: 0, 0, 0, 0>, count_include_pad = false}
    : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @batch_norm(
// CHECK-NEXT:    %y = graph.batch_norm %x, %scale, %bias, %mean, %variance {epsilon = 1.000000e-05 : f64} : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
// GENERIC:       %y = "graph.batch_norm"(%x, %scale, %bias, %mean, %variance) <{epsilon = 1.000000e-05 : f64}> : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
func.func @batch_norm(%x: tensor<1x4x8x8xf32>, %scale: tensor<4xf32>, %bias: tensor<4xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>) {
  %y = graph.batch_norm %x, %scale, %bias, %mean, %variance {epsilon = 1.0e-5 : f64}
    : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> tensor<1x4x8x8xf32>
  func.return
}

// CHECK-LABEL: func.func @cast(
// CHECK-NEXT:    %y = graph.cast %x {to = f32} : (tensor<?x8xf64>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.cast"(%x) <{to = f32}> : (tensor<?x8xf64>) -> tensor<?x8xf32>
func.func @cast(%x: tensor<?x8xf64>) {
  %y = graph.cast %x {to = f32} : (tensor<?x8xf64>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @clip(
// CHECK-NEXT:    %y = graph.clip %x {min = 0.000000e+00 : f64, max = 6.000000e+00 : f64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.clip"(%x) <{min = 0.000000e+00 : f64, max = 6.000000e+00 : f64}> : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @clip(%x: tensor<?x8xf32>) {
  %y = graph.clip %x {min = 0.0 : f64, max = 6.0 : f64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @compare(
// CHECK-NEXT:    %y = graph.compare %x, %b {predicate = "le"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xi1>
// GENERIC:       %y = "graph.compare"(%x, %b) <{predicate = "le"}> : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xi1>
func.func @compare(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.compare %x, %b {predicate = "le"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xi1>
  func.return
}

// CHECK-LABEL: func.func @concat(
// CHECK-NEXT:    %y = graph.concat(%a, %b) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x12xf32>
// GENERIC:       %y = "graph.concat"(%a, %b) <{axis = 1 : i64}> : (tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x12xf32>
func.func @concat(%a: tensor<?x4xf32>, %b: tensor<?x8xf32>) {
  %y = graph.concat(%a, %b) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x12xf32>
  func.return
}

// CHECK-LABEL: func.func @conv(
// CHECK-NEXT:    %y = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
// GENERIC:       %y = "graph.conv"(%x, %w, %b) <{strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64}> : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
func.func @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) {
  %y = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>,
      dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  func.return
}

// CHECK-LABEL: func.func @div(
// CHECK-NEXT:    %y = graph.div %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.div"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @div(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.div %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @erf(
// CHECK-NEXT:    %y = graph.erf %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.erf"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @erf(%x: tensor<?x8xf32>) {
  %y = graph.erf %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @exp(
// CHECK-NEXT:    %y = graph.exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.exp"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @exp(%x: tensor<?x8xf32>) {
  %y = graph.exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @expand(
// CHECK-NEXT:    %y = graph.expand %x {shape = array<i64: 4, 8>} : (tensor<8xf32>) -> tensor<4x8xf32>
// GENERIC:       %y = "graph.expand"(%x) <{shape = array<i64: 4, 8>}> : (tensor<8xf32>) -> tensor<4x8xf32>
func.func @expand(%x: tensor<8xf32>) {
  %y = graph.expand %x {shape = array<i64: 4, 8>} : (tensor<8xf32>) -> tensor<4x8xf32>
  func.return
}

// CHECK-LABEL: func.func @expression(
// CHECK-NEXT:    %y = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)"} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
// GENERIC:       %y = "graph.expression"(%a, %b) <{text = "C(m, n) +=! A(m, k) * B(k, n)"}> : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
func.func @expression(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  %y = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)"} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  func.return
}

// CHECK-LABEL: func.func @fma(
// CHECK-NEXT:    %w = graph.fma %x, %x, %b : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %w = "graph.fma"(%x, %x, %b) : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @fma(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %w = graph.fma %x, %x, %b : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @floor(
// CHECK-NEXT:    %y = graph.floor %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.floor"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @floor(%x: tensor<?x8xf32>) {
  %y = graph.floor %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @forest(
// CHECK-NEXT:    %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "auto"} : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
// GENERIC:       %y = "graph.forest"(%x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base) <{comparison = "le", depth = 2 : i64, strategy = "auto"}> : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
func.func @forest(%x: tensor<?x4xf32>, %feature: tensor<10xi32>, %threshold: tensor<10xf32>, %left: tensor<10xi32>, %right: tensor<10xi32>, %nan_left: tensor<10xi1>, %value: tensor<10x3xf64>, %root: tensor<2xi32>, %output: tensor<2xi32>, %base: tensor<3xf64>) {
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base
      {comparison = "le", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>,
       tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return
}

// CHECK-LABEL: func.func @gather(
// CHECK-NEXT:    %y = graph.gather %data, %indices {axis = 1 : i64} : (tensor<?x64xf32>, tensor<10xi64>) -> tensor<?x10xf32>
// GENERIC:       %y = "graph.gather"(%data, %indices) <{axis = 1 : i64}> : (tensor<?x64xf32>, tensor<10xi64>) -> tensor<?x10xf32>
func.func @gather(%data: tensor<?x64xf32>, %indices: tensor<10xi64>) {
  %y = graph.gather %data, %indices {axis = 1 : i64}
    : (tensor<?x64xf32>, tensor<10xi64>) -> tensor<?x10xf32>
  func.return
}

// CHECK-LABEL: func.func @gather_elements(
// CHECK-NEXT:    %y = graph.gather_elements %data, %indices {axis = 1 : i64} : (tensor<?x64xf32>, tensor<?x10xi64>) -> tensor<?x10xf32>
// GENERIC:       %y = "graph.gather_elements"(%data, %indices) <{axis = 1 : i64}> : (tensor<?x64xf32>, tensor<?x10xi64>) -> tensor<?x10xf32>
func.func @gather_elements(%data: tensor<?x64xf32>, %indices: tensor<?x10xi64>) {
  %y = graph.gather_elements %data, %indices {axis = 1 : i64}
    : (tensor<?x64xf32>, tensor<?x10xi64>) -> tensor<?x10xf32>
  func.return
}

// CHECK-LABEL: func.func @gemm(
// CHECK-NEXT:    %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.000000e+00 : f64, beta = 1.000000e+00 : f64} : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<?x16xf32>
// GENERIC:       %y = "graph.gemm"(%x, %w, %b) <{trans_a = false, trans_b = true, alpha = 1.000000e+00 : f64, beta = 1.000000e+00 : f64}> : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<?x16xf32>
func.func @gemm(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>) {
  %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}
    : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  func.return
}

// CHECK-LABEL: func.func @global_average_pool(
// CHECK-NEXT:    %y = graph.global_average_pool %x : (tensor<1x4x8x8xf32>) -> tensor<1x4x1x1xf32>
// GENERIC:       %y = "graph.global_average_pool"(%x) : (tensor<1x4x8x8xf32>) -> tensor<1x4x1x1xf32>
func.func @global_average_pool(%x: tensor<1x4x8x8xf32>) {
  %y = graph.global_average_pool %x : (tensor<1x4x8x8xf32>) -> tensor<1x4x1x1xf32>
  func.return
}

// CHECK-LABEL: func.func @is_nan(
// CHECK-NEXT:    %y = graph.is_nan %x : (tensor<?x8xf32>) -> tensor<?x8xi1>
// GENERIC:       %y = "graph.is_nan"(%x) : (tensor<?x8xf32>) -> tensor<?x8xi1>
func.func @is_nan(%x: tensor<?x8xf32>) {
  %y = graph.is_nan %x : (tensor<?x8xf32>) -> tensor<?x8xi1>
  func.return
}

// CHECK-LABEL: func.func @log(
// CHECK-NEXT:    %y = graph.log %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.log"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @log(%x: tensor<?x8xf32>) {
  %y = graph.log %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @lstm(
// CHECK-NEXT:    %y, %hn, %cn = graph.lstm %x, %h, %c, %w, %r, %b : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
// GENERIC:       %y, %hn, %cn = "graph.lstm"(%x, %h, %c, %w, %r, %b) : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
func.func @lstm(%x: tensor<5x1x8xf32>, %h: tensor<1x4xf32>, %c: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) {
  %y, %hn, %cn = graph.lstm %x, %h, %c, %w, %r, %b
    : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>,
       tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @lstm_cell(
// CHECK-NEXT:    %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %b : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
// GENERIC:       %h1, %c1 = "graph.lstm_cell"(%x, %h, %c, %w, %r, %b) : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
func.func @lstm_cell(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %c: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) {
  %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %b
    : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>,
       tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @matmul(
// CHECK-NEXT:    %y = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
// GENERIC:       %y = "graph.matmul"(%x, %w) : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
func.func @matmul(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>) {
  %y = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  func.return
}

// CHECK-LABEL: func.func @max(
// CHECK-NEXT:    %y = graph.max %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.max"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @max(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.max %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @max_pool(
// CHECK-NEXT:    %y = graph.max_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
// GENERIC:       %y = "graph.max_pool"(%x) <{kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>}> : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
func.func @max_pool(%x: tensor<1x4x8x8xf32>) {
  %y = graph.max_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
      pads = array<i64: 0, 0, 0, 0>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @min(
// CHECK-NEXT:    %y = graph.min %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.min"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @min(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.min %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @mul(
// CHECK-NEXT:    %y = graph.mul %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.mul"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @mul(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.mul %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @neg(
// CHECK-NEXT:    %y = graph.neg %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.neg"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @neg(%x: tensor<?x8xf32>) {
  %y = graph.neg %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @or(
// CHECK-NEXT:    %y = graph.or %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
// GENERIC:       %y = "graph.or"(%p, %q) : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
func.func @or(%p: tensor<?x8xi1>, %q: tensor<?x8xi1>) {
  %y = graph.or %p, %q : (tensor<?x8xi1>, tensor<?x8xi1>) -> tensor<?x8xi1>
  func.return
}

// CHECK-LABEL: func.func @pad(
// CHECK-NEXT:    %y = graph.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 2>, value = 0.000000e+00 : f64} : (tensor<?x8xf32>) -> tensor<?x11xf32>
// GENERIC:       %y = "graph.pad"(%x) <{low = array<i64: 0, 1>, high = array<i64: 0, 2>, value = 0.000000e+00 : f64}> : (tensor<?x8xf32>) -> tensor<?x11xf32>
func.func @pad(%x: tensor<?x8xf32>) {
  %y = graph.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 2>, value = 0.0 : f64} : (tensor<?x8xf32>) -> tensor<?x11xf32>
  func.return
}

// CHECK-LABEL: func.func @pow(
// CHECK-NEXT:    %y = graph.pow %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.pow"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @pow(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.pow %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @reduce(
// CHECK-NEXT:    %y = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<?x10xf32>) -> tensor<?xf32>
// GENERIC:       %y = "graph.reduce"(%x) <{kind = "sum", axes = array<i64: 1>, keepdims = false}> : (tensor<?x10xf32>) -> tensor<?xf32>
func.func @reduce(%x: tensor<?x10xf32>) {
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false}
    : (tensor<?x10xf32>) -> tensor<?xf32>
  func.return
}

// CHECK-LABEL: func.func @relu(
// CHECK-NEXT:    %y = graph.relu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.relu"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @relu(%x: tensor<?x8xf32>) {
  %y = graph.relu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @reshape(
// CHECK-NEXT:    %y = graph.reshape %x {shape = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<4x2xf32>
// GENERIC:       %y = "graph.reshape"(%x) <{shape = array<i64: 4, 2>}> : (tensor<8xf32>) -> tensor<4x2xf32>
func.func @reshape(%x: tensor<8xf32>) {
  %y = graph.reshape %x {shape = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<4x2xf32>
  func.return
}

// CHECK-LABEL: func.func @sigmoid(
// CHECK-NEXT:    %y = graph.sigmoid %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.sigmoid"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @sigmoid(%x: tensor<?x8xf32>) {
  %y = graph.sigmoid %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @scatter_add(
// CHECK-NEXT:    %y = graph.scatter_add %x, %i, %u : (tensor<50x64xf32>, tensor<8x16xi64>, tensor<8x16x64xf32>) -> tensor<50x64xf32>
// GENERIC:       %y = "graph.scatter_add"(%x, %i, %u) : (tensor<50x64xf32>, tensor<8x16xi64>, tensor<8x16x64xf32>) -> tensor<50x64xf32>
func.func @scatter_add(%x: tensor<50x64xf32>, %i: tensor<8x16xi64>, %u: tensor<8x16x64xf32>) {
  %y = graph.scatter_add %x, %i, %u
    : (tensor<50x64xf32>, tensor<8x16xi64>, tensor<8x16x64xf32>) -> tensor<50x64xf32>
  func.return
}

// CHECK-LABEL: func.func @slice(
// CHECK-NEXT:    %y = graph.slice %x {offsets = array<i64: 2>, sizes = array<i64: 3>, strides = array<i64: 2>} : (tensor<8xf32>) -> tensor<3xf32>
// GENERIC:       %y = "graph.slice"(%x) <{offsets = array<i64: 2>, sizes = array<i64: 3>, strides = array<i64: 2>}> : (tensor<8xf32>) -> tensor<3xf32>
func.func @slice(%x: tensor<8xf32>) {
  %y = graph.slice %x {offsets = array<i64: 2>, sizes = array<i64: 3>, strides = array<i64: 2>}
    : (tensor<8xf32>) -> tensor<3xf32>
  func.return
}

// CHECK-LABEL: func.func @attention(
// CHECK-NEXT:    %y = graph.attention %q, %k, %v, %m {scale = 1.250000e-01 : f64, causal = 2 : i64} : (tensor<?x8x10x64xf32>, tensor<?x8x12x64xf32>, tensor<?x8x12x32xf32>, tensor<10x12xi1>) -> tensor<?x8x10x32xf32>
// GENERIC:       %y = "graph.attention"(%q, %k, %v, %m) <{scale = 1.250000e-01 : f64, causal = 2 : i64}> : (tensor<?x8x10x64xf32>, tensor<?x8x12x64xf32>, tensor<?x8x12x32xf32>, tensor<10x12xi1>) -> tensor<?x8x10x32xf32>
func.func @attention(%q: tensor<?x8x10x64xf32>, %k: tensor<?x8x12x64xf32>, %v: tensor<?x8x12x32xf32>, %m: tensor<10x12xi1>) {
  %y = graph.attention %q, %k, %v, %m {scale = 1.25e-1 : f64, causal = 2 : i64}
    : (tensor<?x8x10x64xf32>, tensor<?x8x12x64xf32>, tensor<?x8x12x32xf32>, tensor<10x12xi1>) -> tensor<?x8x10x32xf32>
  func.return
}

// CHECK-LABEL: func.func @attention_gradients(
// CHECK-NEXT:    %s = graph.attention_query_gradient %q, %k, %v, %c, %m {scale = 5.000000e-01 : f64, causal = 2 : i64} : (tensor<8x10x4xf32>, tensor<1x12x4xf32>, tensor<8x12x3xf32>, tensor<8x10x3xf32>, tensor<10x12xi1>) -> tensor<8x10x6xf32>
// CHECK-NEXT:    %y = graph.attention_key_gradient %q, %k, %v, %c, %s, %m {scale = 5.000000e-01 : f64, causal = 2 : i64} : (tensor<8x10x4xf32>, tensor<1x12x4xf32>, tensor<8x12x3xf32>, tensor<8x10x3xf32>, tensor<8x10x6xf32>, tensor<10x12xi1>) -> tensor<8x12x7xf32>
// GENERIC:       %s = "graph.attention_query_gradient"(%q, %k, %v, %c, %m) <{scale = 5.000000e-01 : f64, causal = 2 : i64}>
// GENERIC-NEXT:  %y = "graph.attention_key_gradient"(%q, %k, %v, %c, %s, %m) <{scale = 5.000000e-01 : f64, causal = 2 : i64}>
func.func @attention_gradients(%q: tensor<8x10x4xf32>, %k: tensor<1x12x4xf32>, %v: tensor<8x12x3xf32>, %c: tensor<8x10x3xf32>, %m: tensor<10x12xi1>) {
  %s = graph.attention_query_gradient %q, %k, %v, %c, %m {scale = 0.5 : f64, causal = 2 : i64}
    : (tensor<8x10x4xf32>, tensor<1x12x4xf32>, tensor<8x12x3xf32>, tensor<8x10x3xf32>, tensor<10x12xi1>) -> tensor<8x10x6xf32>
  %y = graph.attention_key_gradient %q, %k, %v, %c, %s, %m {scale = 0.5 : f64, causal = 2 : i64}
    : (tensor<8x10x4xf32>, tensor<1x12x4xf32>, tensor<8x12x3xf32>, tensor<8x10x3xf32>, tensor<8x10x6xf32>, tensor<10x12xi1>) -> tensor<8x12x7xf32>
  func.return
}

// CHECK-LABEL: func.func @attention_in_parts(
// CHECK-NEXT:    %y = graph.attention %q, %k, %k {scale = 1.250000e-01 : f64, parts = 3 : i64} : (tensor<2x1x64xf32>, tensor<2x12x64xf32>, tensor<2x12x64xf32>) -> tensor<2x3x1x65xf32>
// GENERIC:       %y = "graph.attention"(%q, %k, %k) <{scale = 1.250000e-01 : f64, parts = 3 : i64}>
func.func @attention_in_parts(%q: tensor<2x1x64xf32>, %k: tensor<2x12x64xf32>) {
  %y = graph.attention %q, %k, %k {scale = 1.25e-1 : f64, parts = 3 : i64}
    : (tensor<2x1x64xf32>, tensor<2x12x64xf32>, tensor<2x12x64xf32>) -> tensor<2x3x1x65xf32>
  func.return
}

// CHECK-LABEL: func.func @layer_norm(
// CHECK-NEXT:    %y = graph.layer_norm %x {epsilon = 1.000000e-05 : f64, centred = true} : (tensor<?x10xf32>) -> tensor<?x10xf32>
// GENERIC:       %y = "graph.layer_norm"(%x) <{epsilon = 1.000000e-05 : f64, centred = true}> : (tensor<?x10xf32>) -> tensor<?x10xf32>
func.func @layer_norm(%x: tensor<?x10xf32>) {
  %y = graph.layer_norm %x {epsilon = 1.0e-5 : f64, centred = true} : (tensor<?x10xf32>) -> tensor<?x10xf32>
  func.return
}

// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT:    %y = graph.softmax %x {axis = 1 : i64} : (tensor<?x10xf32>) -> tensor<?x10xf32>
// GENERIC:       %y = "graph.softmax"(%x) <{axis = 1 : i64}> : (tensor<?x10xf32>) -> tensor<?x10xf32>
func.func @softmax(%x: tensor<?x10xf32>) {
  %y = graph.softmax %x {axis = 1 : i64} : (tensor<?x10xf32>) -> tensor<?x10xf32>
  func.return
}

// CHECK-LABEL: func.func @sqrt(
// CHECK-NEXT:    %y = graph.sqrt %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.sqrt"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @sqrt(%x: tensor<?x8xf32>) {
  %y = graph.sqrt %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @sub(
// CHECK-NEXT:    %y = graph.sub %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.sub"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @sub(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.sub %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @tanh(
// CHECK-NEXT:    %y = graph.tanh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.tanh"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @tanh(%x: tensor<?x8xf32>) {
  %y = graph.tanh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @transpose(
// CHECK-NEXT:    %y = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
// GENERIC:       %y = "graph.transpose"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @transpose(%x: tensor<4x8xf32>) {
  %y = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return
}

// CHECK-LABEL: func.func @where(
// CHECK-NEXT:    %z = graph.where %p, %x, %b : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %z = "graph.where"(%p, %x, %b) : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @where(%p: tensor<?x8xi1>, %x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %z = graph.where %p, %x, %b : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}
