// RUN: irkit-opt %s -p 'differentiate{mode=gradient with_respect_to="w","b"},canonicalize,cse,dce' | filecheck %s --check-prefix=LOSS
// RUN: irkit-opt %s -p 'differentiate{function=layer},canonicalize,cse,dce' | filecheck %s --check-prefix=REVERSE
// RUN: irkit-opt %s -p 'differentiate{function=layer mode=forward with_respect_to="x" value=false into=push},dce' | filecheck %s --check-prefix=FORWARD
// RUN: irkit-opt %s -p 'differentiate{function=cube mode=gradient value=false},differentiate{function=cube mode=gradient value=false},canonicalize,cse,dce' | filecheck %s --check-prefix=TWICE
// RUN: irkit-opt %s -p 'differentiate{function=rounds},canonicalize,cse,dce' | filecheck %s --check-prefix=LOOP

// The cotangent of the loss is 1; a broadcast forward is a sum backward, and products stay products.
// LOSS-LABEL: func.func @main(%x: tensor<4x3xf32>, %w: tensor<3x2xf32>, %b: tensor<2xf32>)
// LOSS-SAME: -> (tensor<f32>, tensor<3x2xf32>, tensor<2xf32>)
// LOSS-SAME: irkit.outputs = ["result0", "gradient_w", "gradient_b"]
// LOSS: %[[Y:.*]] = graph.relu
// LOSS: %[[ON:.*]] = graph.compare %[[Y]], %{{.*}} {predicate = "gt"}
// LOSS: %[[D:.*]] = graph.where %[[ON]]
// LOSS: %[[DB:.*]] = graph.reduce %[[D]] {kind = "sum", axes = array<i64: 0>
// LOSS: %[[DW:.*]] = graph.gemm %x, %[[D]] {trans_a = true, trans_b = false
// LOSS: func.return %{{.*}}, %[[DW]], %[[DB]]
func.func @main(%x: tensor<4x3xf32>, %w: tensor<3x2xf32>, %b: tensor<2xf32>) -> tensor<f32> {
  %0 = graph.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %1 = graph.add %0, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %2 = graph.relu %1 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = graph.reduce %2 {kind = "sum", axes = array<i64: 0, 1>, keepdims = false} : (tensor<4x2xf32>) -> tensor<f32>
  func.return %3 : tensor<f32>
}

// All arguments and results of floats, where none are named; what is read twice has the sum of two cotangents.
// REVERSE-LABEL: func.func @layer(%x: tensor<8xf64>, %k: tensor<8xi64>, %cotangent_result0: tensor<8xf64>)
// REVERSE-SAME: irkit.outputs = ["result0", "result1", "gradient_x"]
// REVERSE-DAG: %[[A:.*]] = graph.mul %cotangent_result0, %x
// REVERSE-DAG: %[[C:.*]] = graph.cos %x
// REVERSE: graph.add

// What is made beside it, without its own results. The tangent goes through the op itself.
// FORWARD-LABEL: func.func @layer(%x: tensor<8xf64>, %k: tensor<8xi64>) -> (tensor<8xf64>, tensor<8xi64>)
// FORWARD-LABEL: func.func @push(%x: tensor<8xf64>, %k: tensor<8xi64>, %tangent_x: tensor<8xf64>) -> tensor<8xf64>
// FORWARD-SAME: irkit.outputs = ["tangent_result0"]
// FORWARD: graph.mul %tangent_x
func.func @layer(%x: tensor<8xf64>, %k: tensor<8xi64>) -> (tensor<8xf64>, tensor<8xi64>) {
  %0 = graph.sin %x : (tensor<8xf64>) -> tensor<8xf64>
  %1 = graph.mul %0, %x : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  func.return %1, %k : tensor<8xf64>, tensor<8xi64>
}

// A derivative is a function like any other.
// TWICE-LABEL: func.func @cube(%x: tensor<f64>) -> tensor<f64>
// TWICE-SAME: irkit.outputs = ["gradient_x"]
// TWICE: graph.add
// TWICE: func.return
func.func @cube(%x: tensor<f64>) -> tensor<f64> {
  %0 = graph.mul %x, %x : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %1 = graph.mul %0, %x : (tensor<f64>, tensor<f64>) -> tensor<f64>
  func.return %1 : tensor<f64>
}

// What a loop carries is stacked, one row a round, and a second loop takes the rows from the last to the first.
// LOOP-LABEL: func.func @rounds
// LOOP: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[Y:.*]] = %x, %[[S:.*]] = %{{.*}}) -> (tensor<3xf64>, tensor<5x3xf64>)
// LOOP: tensor.insert_slice %{{.*}} into %[[S]][%[[I]], 0] [1, 3] [1, 1]
// LOOP: scf.for %[[J:.*]] = {{.*}} iter_args(%[[C:.*]] = %cotangent_result0) -> (tensor<3xf64>)
// LOOP: %[[R:.*]] = arith.subi %{{.*}}, %[[J]] : index
// LOOP: %[[ROW:.*]] = tensor.extract_slice %{{.*}}[%[[R]], 0] [1, 3] [1, 1]
// LOOP: graph.cos
func.func @rounds(%x: tensor<3xf64>) -> tensor<3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %x) -> (tensor<3xf64>) {
    %0 = graph.sin %y : (tensor<3xf64>) -> tensor<3xf64>
    scf.yield %0 : tensor<3xf64>
  }
  func.return %r : tensor<3xf64>
}
