// RUN: irkit-opt %s -p set-precision --verify-roundtrip | filecheck %s
// RUN: irkit-opt %s -p set-precision{precision=bf16} | filecheck %s --check-prefix=OPTION
// RUN: irkit-opt %s -p set-precision,unroll-recurrence,convert-graph-to-tensor --check-semantics | filecheck %s --check-prefix=TENSOR
// RUN: irkit-opt %s --to task --check-semantics --verify-roundtrip | filecheck %s --check-prefix=TASK

// The function's own attribute goes; what says a precision itself keeps it; nothing else gets one.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: -> (tensor<1x5xf32>, tensor<2x1x4xf32>) {
// CHECK-NEXT: graph.conv %x, %f {irkit.precision = "tf32",
// CHECK-NEXT: graph.relu %y :
// CHECK: graph.gemm %flat, %w {irkit.precision = "ieee",
// CHECK-NEXT: graph.lstm {{.*}} {irkit.precision = "tf32"} :
// OPTION-LABEL: func.func @main(
// OPTION: graph.conv %x, %f {irkit.precision = "bf16",
// OPTION: graph.gemm %flat, %w {irkit.precision = "ieee",
// TENSOR-LABEL: func.func @main(
// TENSOR: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]{{.*}}attrs = {{ *}}{irkit.precision = "tf32"}
// TENSOR: "reduction"]{{.*}}attrs = {{ *}}{irkit.precision = "ieee"}
// TENSOR-COUNT-4: "reduction"]{{.*}}attrs = {{ *}}{irkit.precision = "tf32"}
// TENSOR-NOT: irkit.precision
// TASK: task.roperator @conv_0
// TASK: attrs = {{ *}}{irkit.precision = "tf32"}
// TASK: task.roperator @gemm_0
// TASK: attrs = {{ *}}{irkit.precision = "ieee"}
// TASK: task.roperator @recurrent_cell_0
// TASK-COUNT-2: attrs = {{ *}}{irkit.precision = "tf32"}
func.func @main(%x: tensor<1x2x4x4xf32>, %f: tensor<3x2x3x3xf32>, %w: tensor<12x5xf32>, %s: tensor<2x1x6xf32>, %h: tensor<1x4xf32>, %wi: tensor<16x6xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) -> (tensor<1x5xf32>, tensor<2x1x4xf32>) attributes {irkit.precision = "tf32"} {
  %y = graph.conv %x, %f {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x2x2xf32>
  %z = graph.relu %y : (tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  %flat = graph.reshape %z {shape = array<i64: 1, 12>} : (tensor<1x3x2x2xf32>) -> tensor<1x12xf32>
  %p = graph.gemm %flat, %w {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 1.0 : f64, irkit.precision = "ieee"} : (tensor<1x12xf32>, tensor<12x5xf32>) -> tensor<1x5xf32>
  %o, %hn, %cn = graph.lstm %s, %h, %h, %wi, %r, %b : (tensor<2x1x6xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x6xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<2x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  func.return %p, %o : tensor<1x5xf32>, tensor<2x1x4xf32>
}

// Products of other elements have none.
// CHECK-LABEL: func.func @wide(
// CHECK: graph.matmul %{{.*}}, %{{[^ ]*}} :
func.func @wide(%x: tensor<2x3xf64>, %w: tensor<3x4xf64>) -> tensor<2x4xf64> attributes {irkit.precision = "f16"} {
  %y = graph.matmul %x, %w : (tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>
  func.return %y : tensor<2x4xf64>
}
