// What each graph op refuses, and in which words.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics

func.func @binary_broadcast(%x: tensor<4x8xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{'graph.add' expects operands that broadcast together, got tensor<4x8xf32> and tensor<3xf32>}}
  %y = graph.add %x, %b : (tensor<4x8xf32>, tensor<3xf32>) -> tensor<4x8xf32>
  func.return
}

// -----

func.func @binary_element(%x: tensor<8xf32>, %b: tensor<8xf64>) {
  // expected-error@+1 {{'graph.mul' expects operands of one element type (f32), got f64}}
  %y = graph.mul %x, %b : (tensor<8xf32>, tensor<8xf64>) -> tensor<8xf32>
  func.return
}

// -----

func.func @unary_float(%x: tensor<8xi64>) {
  // expected-error@+1 {{'graph.exp' expects elements of bf16, f16 to f64, got tensor<8xi64>}}
  %y = graph.exp %x : (tensor<8xi64>) -> tensor<8xi64>
  func.return
}

// -----

func.func @unary_result(%x: tensor<8xf32>) {
  // expected-error@+1 {{'graph.neg' expects result of type tensor<8xf32>, got tensor<9xf32>}}
  %y = graph.neg %x : (tensor<8xf32>) -> tensor<9xf32>
  func.return
}

// -----

func.func @logical(%p: tensor<8xf32>, %q: tensor<8xf32>) {
  // expected-error@+1 {{'graph.and' expects elements of i1, i8 to i64, ui8 to ui64, got tensor<8xf32>}}
  %y = graph.and %p, %q : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @cast(%x: tensor<8xf64>) {
  // expected-error@+1 {{'graph.cast' expects result of type tensor<8xf32>, got tensor<8xf64>}}
  %y = graph.cast %x {to = f32} : (tensor<8xf64>) -> tensor<8xf64>
  func.return
}

// -----

func.func @compare(%x: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'graph.compare' expects a predicate among eq, ne, lt, le, gt, ge, got 'less'}}
  %y = graph.compare %x, %b {predicate = "less"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  func.return
}

// -----

func.func @compare_element(%x: tensor<8xf32>, %b: tensor<8xf64>) {
  // expected-error@+1 {{'graph.compare' expects operands of one element type (f32), got f64}}
  %y = graph.compare %x, %b {predicate = "le"} : (tensor<8xf32>, tensor<8xf64>) -> tensor<8xi1>
  func.return
}

// -----

func.func @fma_of_halves(%x: tensor<8xf16>) {
  // expected-error@+1 {{'graph.fma' expects elements of f32, f64, got tensor<8xf16>}}
  %w = graph.fma %x, %x, %x : (tensor<8xf16>, tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  func.return
}

// -----

func.func @where(%p: tensor<8xf32>, %x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{'graph.where' expects elements of i1, got tensor<8xf32>}}
  %z = graph.where %p, %x, %y : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @conv_channels(%x: tensor<1x3x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{'graph.conv' expects x with 2 channels, got 3}}
  %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x3x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

func.func @conv_group(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'graph.conv' expects group of 1 or more, got 0}}
  %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 0 : i64}
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

func.func @conv_group_outputs(%x: tensor<1x3x8x8xf32>, %w: tensor<4x1x3x3xf32>) {
  // expected-error@+1 {{'graph.conv' expects output channels divisible by 3, got 4}}
  %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 3 : i64}
    : (tensor<1x3x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

func.func @conv_bias(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{'graph.conv' expects a bias of 4 elements, got tensor<3xf32>}}
  %y = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

func.func @conv_dilations(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'graph.conv' expects 2 dilations of 1 or more, got [1]}}
  %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1>, group = 1 : i64}
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

func.func @conv_rank(%x: tensor<1x3x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'graph.conv' expects w of rank 3, got tensor<4x3x3x3xf32>}}
  %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
    : (tensor<1x3x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

func.func @pool_strides(%x: tensor<1x4x8x8xf32>) {
  // expected-error@+1 {{'graph.max_pool' expects 2 strides of 1 or more, got [2, 0]}}
  %y = graph.max_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 0>, pads = array<i64: 0, 0, 0, 0>}
    : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// -----

func.func @pool_pads(%x: tensor<1x4x8x8xf32>) {
  // expected-error@+1 {{'graph.max_pool' expects 4 pads of 0 or more, got [0, 0]}}
  %y = graph.max_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0>}
    : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// -----

func.func @pool_window(%x: tensor<1x4x8x8xf32>) {
  // expected-error@+1 {{'graph.average_pool' expects a window that fits the padded input, got output 0x4}}
  %y = graph.average_pool %x {kernel_shape = array<i64: 9, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, count_include_pad = false}
    : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// -----

func.func @pool_kernel(%x: tensor<1x4x8x8xf32>) {
  // expected-error@+1 {{'graph.max_pool' expects 2 kernel sizes of 1 or more, got [2]}}
  %y = graph.max_pool %x {kernel_shape = array<i64: 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>}
    : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// -----

func.func @global_pool(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'graph.global_average_pool' expects x of rank 3 to 5, got tensor<4x8xf32>}}
  %y = graph.global_average_pool %x : (tensor<4x8xf32>) -> tensor<4x1xf32>
  func.return
}

// -----

func.func @forest_threshold(%x: tensor<?x4xf32>, %feature: tensor<10xi32>, %threshold: tensor<10xf64>, %left: tensor<10xi32>, %right: tensor<10xi32>, %nan_left: tensor<10xi1>, %value: tensor<10x3xf64>, %root: tensor<2xi32>, %output: tensor<2xi32>, %base: tensor<3xf64>) {
  // expected-error@+1 {{'graph.forest' expects threshold of type tensor<10xf32>, got tensor<10xf64>}}
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf64>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return
}

// -----

func.func @forest_value(%x: tensor<?x4xf32>, %feature: tensor<10xi32>, %threshold: tensor<10xf32>, %left: tensor<10xi32>, %right: tensor<10xi32>, %nan_left: tensor<10xi1>, %value: tensor<10x2xf64>, %root: tensor<2xi32>, %output: tensor<2xi32>, %base: tensor<3xf64>) {
  // expected-error@+1 {{'graph.forest' expects value of 10x1 or 10x3 f64, got tensor<10x2xf64>}}
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x2xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return
}

// -----

func.func @forest_comparison(%x: tensor<?x4xf32>, %feature: tensor<10xi32>, %threshold: tensor<10xf32>, %left: tensor<10xi32>, %right: tensor<10xi32>, %nan_left: tensor<10xi1>, %value: tensor<10x3xf64>, %root: tensor<2xi32>, %output: tensor<2xi32>, %base: tensor<3xf64>) {
  // expected-error@+1 {{'graph.forest' expects a comparison among le, lt, got 'gt'}}
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "gt", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return
}

// -----

func.func @forest_strategy(%x: tensor<?x4xf32>, %feature: tensor<10xi32>, %threshold: tensor<10xf32>, %left: tensor<10xi32>, %right: tensor<10xi32>, %nan_left: tensor<10xi1>, %value: tensor<10x3xf64>, %root: tensor<2xi32>, %output: tensor<2xi32>, %base: tensor<3xf64>) {
  // expected-error@+1 {{'graph.forest' expects a strategy among auto, walk, gemm, traversal, perfect_traversal, got 'run'}}
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "run"}
    : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return
}

// -----

func.func @forest_scalar(%x: tensor<?x4xf32>, %feature: tensor<10xi32>, %threshold: tensor<10xf32>, %left: tensor<10xi32>, %right: tensor<10xi32>, %nan_left: tensor<10xi1>, %value: tensor<10x3xf64>, %root: tensor<i32>, %output: tensor<2xi32>, %base: tensor<3xf64>) {
  // expected-error@+1 {{'graph.forest' expects root of rank 1, got tensor<i32>}}
  %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base {comparison = "le", depth = 2 : i64, strategy = "auto"}
    : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>, tensor<10x3xf64>, tensor<i32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return
}

// -----

func.func @gemm_inner(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>) {
  // expected-error@+1 {{'graph.gemm' expects b with 8 rows (columns of a), got 16}}
  %y = graph.gemm %x, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 1.0 : f64}
    : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
  func.return
}

// -----

func.func @gemm_bias(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %b: tensor<15xf32>) {
  // expected-error@+1 {{c that broadcasts to}}
  %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}
    : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<15xf32>) -> tensor<?x16xf32>
  func.return
}

// -----

func.func @matmul_inner(%x: tensor<?x8xf32>, %w: tensor<7x16xf32>) {
  // expected-error@+1 {{'graph.matmul' expects b with 8 rows (columns of a), got 7}}
  %y = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<7x16xf32>) -> tensor<?x16xf32>
  func.return
}

// -----

func.func @matmul_rank(%x: tensor<8xf32>, %w: tensor<8x16xf32>) {
  // expected-error@+1 {{'graph.matmul' expects operands of rank 2 or more, got tensor<8xf32> and tensor<8x16xf32>}}
  %y = graph.matmul %x, %w : (tensor<8xf32>, tensor<8x16xf32>) -> tensor<16xf32>
  func.return
}

// -----

func.func @matmul_lead(%x: tensor<2x4x8xf32>, %w: tensor<3x8x16xf32>) {
  // expected-error@+1 {{'graph.matmul' expects leading dimensions that broadcast, got tensor<2x4x8xf32> and tensor<3x8x16xf32>}}
  %y = graph.matmul %x, %w : (tensor<2x4x8xf32>, tensor<3x8x16xf32>) -> tensor<2x4x16xf32>
  func.return
}

// -----

func.func @batch_norm(%x: tensor<1x4x8x8xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<3xf32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'graph.batch_norm' expects parameters of 4 elements, got tensor<3xf32>}}
  %y = graph.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5 : f64}
    : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  func.return
}

// -----

func.func @softmax_axis(%x: tensor<?x10xf32>) {
  // expected-error@+1 {{'graph.softmax' expects 0 <= axis < 2 (rank of tensor<?x10xf32>), got axis = 2}}
  %y = graph.softmax %x {axis = 2 : i64} : (tensor<?x10xf32>) -> tensor<?x10xf32>
  func.return
}

// -----

func.func @softmax_float(%x: tensor<?x10xi64>) {
  // expected-error@+1 {{'graph.softmax' expects elements of bf16, f16 to f64, got tensor<?x10xi64>}}
  %y = graph.softmax %x {axis = 1 : i64} : (tensor<?x10xi64>) -> tensor<?x10xi64>
  func.return
}

// -----

func.func @argmax_axis(%x: tensor<?x10xf32>) {
  // expected-error@+1 {{'graph.argmax' expects 0 <= axis < 2 (rank of tensor<?x10xf32>), got axis = -1}}
  %y = graph.argmax %x {axis = -1 : i64, keepdims = false} : (tensor<?x10xf32>) -> tensor<?xi64>
  func.return
}

// -----

func.func @reduce_kind(%x: tensor<?x10xf32>) {
  // expected-error@+1 {{'graph.reduce' expects a kind among sum, mean, max, min, prod, got 'norm'}}
  %y = graph.reduce %x {kind = "norm", axes = array<i64: 1>, keepdims = false}
    : (tensor<?x10xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @reduce_axis(%x: tensor<?x10xf32>) {
  // expected-error@+1 {{'graph.reduce' expects 0 <= axis < 2 (rank of tensor<?x10xf32>), got axis = 2}}
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 2>, keepdims = false}
    : (tensor<?x10xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @reduce_same_axis(%x: tensor<?x10xf32>) {
  // expected-error@+1 {{'graph.reduce' expects axes that differ, got [1, 1]}}
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 1, 1>, keepdims = false}
    : (tensor<?x10xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @reduce_keepdims(%x: tensor<?x10xf32>) {
  // expected-error@+1 {{'graph.reduce' expects result of type tensor<?x1xf32>, got tensor<?xf32>}}
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = true}
    : (tensor<?x10xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @lstm_cell_state(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %c: tensor<2x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) {
  // expected-error@+1 {{'graph.lstm_cell' expects h and c of one type with 1 rows, got tensor<1x4xf32> and tensor<2x4xf32>}}
  %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %b
    : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<2x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// -----

func.func @lstm_cell_weight(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %c: tensor<1x4xf32>, %w: tensor<16x9xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) {
  // expected-error@+1 {{'graph.lstm_cell' expects w of shape 16x8, got tensor<16x9xf32>}}
  %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %b
    : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x9xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// -----

func.func @lstm_rank(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %c: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) {
  // expected-error@+1 {{'graph.lstm' expects x of rank 3, got tensor<1x8xf32>}}
  %y, %hn, %cn = graph.lstm %x, %h, %c, %w, %r, %b
    : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// -----

func.func @lstm_result(%x: tensor<5x1x8xf32>, %h: tensor<1x4xf32>, %c: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) {
  // expected-error@+1 {{'graph.lstm' expects result 2 of type tensor<1x4xf32>, got tensor<1x5xf32>}}
  %y, %hn, %cn = graph.lstm %x, %h, %c, %w, %r, %b
    : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x5xf32>)
  func.return
}

// -----

func.func @concat_none() {
  // expected-error@+1 {{'graph.concat' expects at least one operand, got none}}
  %y = graph.concat() {axis = 1 : i64} : () -> tensor<?x12xf32>
  func.return
}

// -----

func.func @concat_shape(%a: tensor<3x4xf32>, %b: tensor<4x8xf32>) {
  // expected-error@+1 {{'graph.concat' expects operands that agree with tensor<3x4xf32> outside axis 1, got tensor<4x8xf32>}}
  %y = graph.concat(%a, %b) {axis = 1 : i64} : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x12xf32>
  func.return
}

// -----

func.func @expand(%x: tensor<8xf32>) {
  // expected-error@+1 {{'graph.expand' expects an operand that broadcasts to [4, 9], got tensor<8xf32>}}
  %y = graph.expand %x {shape = array<i64: 4, 9>} : (tensor<8xf32>) -> tensor<4x9xf32>
  func.return
}

// -----

func.func @gather_axis(%d: tensor<?x64xf32>, %i: tensor<10xi64>) {
  // expected-error@+1 {{'graph.gather' expects 0 <= axis < 2 (rank of tensor<?x64xf32>), got axis = 2}}
  %y = graph.gather %d, %i {axis = 2 : i64} : (tensor<?x64xf32>, tensor<10xi64>) -> tensor<?x10xf32>
  func.return
}

// -----

func.func @gather_indices(%d: tensor<?x64xf32>, %i: tensor<10xf32>) {
  // expected-error@+1 {{'graph.gather' expects elements of i32, i64, got tensor<10xf32>}}
  %y = graph.gather %d, %i {axis = 1 : i64} : (tensor<?x64xf32>, tensor<10xf32>) -> tensor<?x10xf32>
  func.return
}

// -----

func.func @gather_elements(%d: tensor<4x64xf32>, %i: tensor<5x10xi64>) {
  // expected-error@+1 {{'graph.gather_elements' expects indices that agree with tensor<4x64xf32> outside axis 1, got tensor<5x10xi64>}}
  %y = graph.gather_elements %d, %i {axis = 1 : i64}
    : (tensor<4x64xf32>, tensor<5x10xi64>) -> tensor<5x10xf32>
  func.return
}

// -----

func.func @scatter_add_updates(%x: tensor<5x3xf32>, %i: tensor<4xi64>, %u: tensor<4xf32>) {
  // expected-error@+1 {{'graph.scatter_add' expects updates of type tensor<4x3xf32>, a row for each index, got tensor<4xf32>}}
  %y = graph.scatter_add %x, %i, %u : (tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @scatter_add_batch(%x: tensor<5x3xf32>, %i: tensor<?xi64>, %u: tensor<?x3xf32>) {
  // expected-error@+1 {{'graph.scatter_add' expects static shapes, since any row may be added to any place, got tensor<?xi64>}}
  %y = graph.scatter_add %x, %i, %u : (tensor<5x3xf32>, tensor<?xi64>, tensor<?x3xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @scatter_add_halves(%x: tensor<5x3xf16>, %i: tensor<4xi64>, %u: tensor<4x3xf16>) {
  // expected-error@+1 {{'graph.scatter_add' expects elements of f32, f64, got tensor<5x3xf16>}}
  %y = graph.scatter_add %x, %i, %u : (tensor<5x3xf16>, tensor<4xi64>, tensor<4x3xf16>) -> tensor<5x3xf16>
  func.return
}

// -----

func.func @scatter_add_nowhere(%x: tensor<0x3xf32>, %i: tensor<4xi64>, %u: tensor<4x3xf32>) {
  // expected-error@+1 {{'graph.scatter_add' expects a first dimension of one element or more, got tensor<0x3xf32>}}
  %y = graph.scatter_add %x, %i, %u : (tensor<0x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<0x3xf32>
  func.return
}

// -----

func.func @reshape(%x: tensor<8xf32>) {
  // expected-error@+1 {{'graph.reshape' expects a shape with the elements of tensor<8xf32>, got [4, 3]}}
  %y = graph.reshape %x {shape = array<i64: 4, 3>} : (tensor<8xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @slice_outside(%x: tensor<8xf32>) {
  // expected-error@+1 {{'graph.slice' expects a slice inside tensor<8xf32>, got offset 6, size 3, stride 1}}
  %y = graph.slice %x {offsets = array<i64: 6>, sizes = array<i64: 3>, strides = array<i64: 1>}
    : (tensor<8xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @slice_count(%x: tensor<8xf32>) {
  // expected-error@+1 {{'graph.slice' expects 1 offsets, sizes and strides, got [1]}}
  %y = graph.slice %x {offsets = array<i64: 6, 0>, sizes = array<i64: 1>, strides = array<i64: 1>}
    : (tensor<8xf32>) -> tensor<1xf32>
  func.return
}

// -----

func.func @transpose(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'graph.transpose' expects a permutation of 0..1, got [1, 1]}}
  %y = graph.transpose %x {permutation = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return
}

// -----

func.func @conv_transpose_channels(%x: tensor<1x3x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{'graph.conv_transpose' expects x with 4 channels in 1 groups, got tensor<1x3x8xf32>}}
  %y = graph.conv_transpose %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x3x8xf32>, tensor<4x2x3xf32>) -> tensor<1x2x10xf32>
  func.return
}

// -----

func.func @conv_transpose_form(%x: tensor<1x3x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error@+1 {{'graph.conv_transpose' expects "product" as form, or none, got "fast"}}
  %y = graph.conv_transpose %x, %w {form = "fast", strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x3x8xf32>, tensor<3x2x3xf32>) -> tensor<1x2x10xf32>
  func.return
}

// -----

func.func @conv_transpose_taps_apart(%x: tensor<1x3x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error@+1 {{'graph.conv_transpose' expects dilations of 1 in the form "product", got [2]}}
  %y = graph.conv_transpose %x, %w {form = "product", strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 2>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x3x8xf32>, tensor<3x2x3xf32>) -> tensor<1x2x12xf32>
  func.return
}

// -----

func.func @conv_transpose_output(%x: tensor<1x3x1xf32>, %w: tensor<3x2x1xf32>) {
  // expected-error@+1 {{'graph.conv_transpose' expects a window that fits the padded input, got output -1}}
  %y = graph.conv_transpose %x, %w {strides = array<i64: 1>, pads = array<i64: 1, 1>, dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 0>}
    : (tensor<1x3x1xf32>, tensor<3x2x1xf32>) -> tensor<1x2x1xf32>
  func.return
}

// -----

func.func @pool_wide_pads(%x: tensor<1x4x8xf32>) {
  // expected-error@+1 {{'graph.max_pool' expects pads smaller than the window, got [2, 0]}}
  %y = graph.max_pool %x {kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 2, 0>}
    : (tensor<1x4x8xf32>) -> tensor<1x4x5xf32>
  func.return
}

// -----

func.func @average_pool_integers(%x: tensor<1x4x8xi32>) {
  // expected-error@+1 {{'graph.average_pool' expects elements of bf16, f16 to f64, got tensor<1x4x8xi32>}}
  %y = graph.average_pool %x {kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, count_include_pad = true}
    : (tensor<1x4x8xi32>) -> tensor<1x4x4xi32>
  func.return
}

// -----

func.func @lp_pool_p(%x: tensor<1x4x8xf32>) {
  // expected-error@+1 {{'graph.lp_pool' expects p of 1 or more, got 0}}
  %y = graph.lp_pool %x {kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, p = 0 : i64}
    : (tensor<1x4x8xf32>) -> tensor<1x4x4xf32>
  func.return
}

// -----

func.func @max_pool_indices_dynamic(%x: tensor<1x4x?xf32>) {
  // expected-error@+1 {{'graph.max_pool_indices' expects static channels and spatial dimensions, got tensor<1x4x?xf32>}}
  %y = graph.max_pool_indices %x {kernel_shape = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, column_major = false}
    : (tensor<1x4x?xf32>) -> tensor<1x4x?xi64>
  func.return
}

// -----

func.func @lrn_size(%x: tensor<1x4x8xf32>) {
  // expected-error@+1 {{'graph.lrn' expects a size of 1 or more, got 0}}
  %y = graph.lrn %x {size = 0 : i64, alpha = 1.0 : f64, beta = 1.0 : f64, bias = 1.0 : f64}
    : (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  func.return
}

// -----

func.func @cumsum_batch(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'graph.cumsum' expects an axis of static extent, got tensor<?x8xf32>}}
  %y = graph.cumsum %x {axis = 0 : i64, exclusive = false, reverse = false} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// -----

func.func @top_k(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'graph.top_k' expects 0 < k <= 8, got k = 9}}
  %y, %i = graph.top_k %x {k = 9 : i64, axis = 1 : i64, largest = true} : (tensor<?x8xf32>) -> (tensor<?x9xf32>, tensor<?x9xi64>)
  func.return
}

// -----

func.func @shift_of_floats(%x: tensor<8xf32>) {
  // expected-error@+1 {{'graph.shift_left' expects elements of i8 to i64, ui8 to ui64, got tensor<8xf32>}}
  %y = graph.shift_left %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @not_of_floats(%x: tensor<8xf32>) {
  // expected-error@+1 {{'graph.not' expects elements of i1, i8 to i64, ui8 to ui64, got tensor<8xf32>}}
  %y = graph.not %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @shift_of_booleans(%x: tensor<8xi1>) {
  // expected-error@+1 {{'graph.shift_left' expects elements of i8 to i64, ui8 to ui64, got tensor<8xi1>}}
  %y = graph.shift_left %x, %x : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
  func.return
}

// -----

func.func @pad_of_the_batch(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'graph.pad' expects no padding of a dynamic dimension, got tensor<?x8xf32>}}
  %y = graph.pad %x {low = array<i64: 1, 0>, high = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// -----

func.func @gru_bias(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<12x8xf32>, %r: tensor<12x4xf32>, %b: tensor<12xf32>) {
  // expected-error@+1 {{'graph.gru_cell' expects b of shape 16, got tensor<12xf32>}}
  %y = graph.gru_cell %x, %h, %w, %r, %b {linear_before_reset = true} : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<12xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @lstm_peepholes(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>, %p: tensor<16xf32>) {
  // expected-error@+1 {{'graph.lstm_cell' expects p of shape 12, got tensor<16xf32>}}
  %y, %c = graph.lstm_cell %x, %h, %h, %w, %r, %b, %p : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// -----

func.func @rnn_functions(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<4x8xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{'graph.rnn_cell' expects 1 activations among relu, sigmoid, softplus, softsign, tanh, got ['swish']}}
  %y = graph.rnn_cell %x, %h, %w, %r, %b {activations = ["swish"]} : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @rnn_rows(%x: tensor<5x2x8xf32>, %h: tensor<1x4xf32>, %w: tensor<4x8xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{'graph.rnn' expects h with 2 rows, got tensor<1x4xf32>}}
  %y, %z = graph.rnn %x, %h, %w, %r, %b : (tensor<5x2x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
  func.return
}

// -----

func.func @attention_sizes(%q: tensor<3x4xf32>, %k: tensor<5x3xf32>, %v: tensor<5x2xf32>) {
  // expected-error@+1 {{'graph.attention' expects queries and keys of one size, 1 or more, got tensor<3x4xf32> and tensor<5x3xf32>}}
  %y = graph.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<3x4xf32>, tensor<5x3xf32>, tensor<5x2xf32>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @attention_keys(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<6x2xf32>) {
  // expected-error@+1 {{'graph.attention' expects as many values as keys, one or more, got tensor<5x4xf32> and tensor<6x2xf32>}}
  %y = graph.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<6x2xf32>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @attention_ranks(%q: tensor<1x3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x2xf32>) {
  // expected-error@+1 {{'graph.attention' expects query, key and value of one rank, 2 or more, got ranks [3, 2, 2]}}
  %y = graph.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<1x3x4xf32>, tensor<5x4xf32>, tensor<5x2xf32>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @attention_mask(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x2xf32>, %m: tensor<5x3xf32>) {
  // expected-error@+1 {{'graph.attention' expects a mask that broadcasts to 3x5, got tensor<5x3xf32>}}
  %y = graph.attention %q, %k, %v, %m {scale = 1.0 : f64} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x2xf32>, tensor<5x3xf32>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @attention_mask_type(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x2xf32>, %m: tensor<3x5xf64>) {
  // expected-error@+1 {{'graph.attention' expects a mask of i1 or f32, got tensor<3x5xf64>}}
  %y = graph.attention %q, %k, %v, %m {scale = 1.0 : f64} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x2xf32>, tensor<3x5xf64>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @attention_cotangent(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x2xf32>) {
  // expected-error@+1 {{'graph.attention_query_gradient' expects a cotangent of the attention's type, tensor<3x2xf32>, got tensor<3x4xf32>}}
  %y = graph.attention_query_gradient %q, %k, %v, %q {scale = 1.0 : f64} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x2xf32>, tensor<3x4xf32>) -> tensor<3x6xf32>
  func.return
}

// -----

func.func @attention_sums(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x2xf32>, %c: tensor<3x2xf32>) {
  // expected-error@+1 {{'graph.attention_key_gradient' expects the gradient of the queries and two sums, tensor<3x6xf32>, got tensor<3x4xf32>}}
  %y = graph.attention_key_gradient %q, %k, %v, %c, %q {scale = 1.0 : f64} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x2xf32>, tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<5x6xf32>
  func.return
}

// -----

func.func @attention_in_empty_parts(%q: tensor<3x4xf32>, %k: tensor<9x4xf32>) {
  // expected-error@+1 {{'graph.attention' expects parts that each have some of 9 keys, got 8}}
  %y = graph.attention %q, %k, %k {scale = 1.0 : f64, parts = 8 : i64} : (tensor<3x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<8x3x5xf32>
  func.return
}

// -----

func.func @causal_attention_in_parts(%q: tensor<3x4xf32>, %k: tensor<9x4xf32>) {
  // expected-error@+1 {{'graph.attention' expects no `causal` where keys are cut into parts, got 0 : i64}}
  %y = graph.attention %q, %k, %k {scale = 1.0 : f64, causal = 0 : i64, parts = 2 : i64} : (tensor<3x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<2x3x5xf32>
  func.return
}

// -----

func.func @attention_in_parts_of_an_open_batch(%q: tensor<?x3x4xf32>, %k: tensor<?x9x4xf32>) {
  // expected-error@+1 {{'graph.attention' expects known sizes where keys are cut into parts, got ?x3x4x9}}
  %y = graph.attention %q, %k, %k {scale = 1.0 : f64, parts = 2 : i64} : (tensor<?x3x4xf32>, tensor<?x9x4xf32>, tensor<?x9x4xf32>) -> tensor<?x2x3x5xf32>
  func.return
}

// -----

func.func @layer_norm_of_unknown_length(%x: tensor<4x?xf32>) {
  // expected-error@+1 {{'graph.layer_norm' expects a last dimension of known extent, 1 or more, got tensor<4x?xf32>}}
  %y = graph.layer_norm %x {epsilon = 1.0e-5 : f64, centred = true} : (tensor<4x?xf32>) -> tensor<4x?xf32>
  func.return
}

// -----

func.func @layer_norm_of_integers(%x: tensor<4x8xi32>) {
  // expected-error@+1 {{'graph.layer_norm' expects elements of bf16, f16 to f64, got tensor<4x8xi32>}}
  %y = graph.layer_norm %x {epsilon = 1.0e-5 : f64, centred = true} : (tensor<4x8xi32>) -> tensor<4x8xi32>
  func.return
}

// -----

func.func @layer_norm_of_a_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'graph.layer_norm' expects}}
  %y = graph.layer_norm %x {epsilon = 1.0e-5 : f64, centred = true} : (tensor<f32>) -> tensor<f32>
  func.return
}

// -----

func.func @expression_out_of_bounds(%x: tensor<4xf32>) {
  // expected-error@+1 {{index 0 of 'X' may be from 1 to 4, and its size is 4}}
  %y = graph.expression %x {text = "O(i) = X(i + 1) where i in 0:4"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @expression_of_other_sizes(%a: tensor<4x8xf32>, %b: tensor<7x16xf32>) {
  // expected-error@+1 {{'graph.expression' expects result of type tensor<4x16xf32>, got tensor<4x15xf32>}}
  %y = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)"} : (tensor<4x8xf32>, tensor<7x16xf32>) -> tensor<4x15xf32>
  func.return
}

// -----

func.func @expression_of_a_batch(%x: tensor<?xf32>) {
  // expected-error@+1 {{'graph.expression' expects operands whose extents are known, got tensor<?xf32>}}
  %y = graph.expression %x {text = "O(i) = X(i)"} : (tensor<?xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @expression_of_several_statements(%x: tensor<4xf32>) {
  // expected-error@+1 {{2 statements in place of one}}
  %y = graph.expression %x {text = "T(i) = X(i); O(i) = T(i)"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
