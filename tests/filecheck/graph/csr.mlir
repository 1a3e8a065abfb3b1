// Rows of a CSR matrix: forms, and all levels.
// RUN: irkit-opt %s | irkit-opt | filecheck %s
// RUN: irkit-opt %s --check-semantics --to=schedule | filecheck %s --check-prefix=SCHEDULE

// CHECK-LABEL: func.func @main
// CHECK: %n = graph.csr_reduce %data, %indices, %starts, %ends {kind = "sum", initial = 0.000000e+00 : f64, steps = ["mul x x"]} : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>) -> tensor<?x1xf64>
// CHECK: %y = graph.csr_matmul %data, %indices, %starts, %ends, %w, %s {steps = ["div x a0"]} : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<30x4xf64>, tensor<?x1xf64>) -> tensor<?x4xf64>
// SCHEDULE: task.roperator @csr_reduce_0(%{{.*}}: tensor<1x?xf64>, %{{.*}}: tensor<1x?xi32>, %{{.*}}: tensor<?xi64>, %{{.*}}: tensor<?xi64>) -> tensor<?x1xf64>
// SCHEDULE-SAME: rkernel = "csr_reduce.rows"
// SCHEDULE: math.sqrt
// SCHEDULE: task.roperator @csr_0
// SCHEDULE-SAME: rkernel = "csr.rows"
// SCHEDULE: arith.addf
// SCHEDULE: task.append @csr_reduce_0
// SCHEDULE-NEXT: task.append @csr_0
func.func @main(%data: tensor<1x?xf64>, %indices: tensor<1x?xi32>, %starts: tensor<?xi64>, %ends: tensor<?xi64>)
    -> tensor<?x4xf64> attributes {irkit.dims = [["stored"], ["stored"], ["batch"], ["batch"]]} {
  %w = arith.constant dense<2.0> : tensor<30x4xf64>
  %b = arith.constant dense<3.0> : tensor<4xf64>
  %n = graph.csr_reduce %data, %indices, %starts, %ends {kind = "sum", initial = 0.0 : f64, steps = ["mul x x"]}
      : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>) -> tensor<?x1xf64>
  %s = graph.sqrt %n : (tensor<?x1xf64>) -> tensor<?x1xf64>
  %y = graph.csr_matmul %data, %indices, %starts, %ends, %w, %s {steps = ["div x a0"]}
      : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<30x4xf64>, tensor<?x1xf64>) -> tensor<?x4xf64>
  %z = graph.add %y, %b : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  func.return %z : tensor<?x4xf64>
}
