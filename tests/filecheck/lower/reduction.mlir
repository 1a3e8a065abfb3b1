// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics --split-input-file | filecheck %s

// Kept dimensions are the first loops, reduced ones the last.
func.func @main(%x: tensor<?x3x4xf32>) -> tensor<?x1x4xf32> {
  %y = graph.reduce %x {kind = "mean", axes = array<i64: 1>, keepdims = true} : (tensor<?x3x4xf32>) -> tensor<?x1x4xf32>
  return %y : tensor<?x1x4xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x3x4xf32>)
// CHECK:         [[zero:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         [[init:%.*]] = linalg.fill ins([[zero]] : f32)
// CHECK:         [[sum:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<?x3x4xf32>) outs([[init]] : tensor<?x4xf32>)
// CHECK:         arith.addf
// CHECK:         [[mean:%.*]] = linalg.generic {{.*}} ins([[sum]] : tensor<?x4xf32>)
// CHECK:         [[n:%.*]] = arith.constant 3.000000e+00 : f32
// CHECK-NEXT:    arith.divf {{%.*}}, [[n]] : f32
// CHECK:         %y = tensor.expand_shape [[mean]] {{\[\[}}0 : i64], [1 : i64, 2 : i64]] output_shape [{{%.*}}, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>

// -----

func.func @main(%x: tensor<3xi32>) -> tensor<i32> {
  %y = graph.reduce %x {kind = "max", axes = array<i64: 0>, keepdims = false} : (tensor<3xi32>) -> tensor<i32>
  return %y : tensor<i32>
}
// CHECK-LABEL: func.func @main(%x: tensor<3xi32>)
// CHECK:         arith.constant -2147483648 : i32
// CHECK:         iterator_types = ["reduction"]
// CHECK:         arith.maxsi

// -----

// The axis is brought to the end first.
func.func @main(%x: tensor<?x3x4xf32>) -> tensor<?x4xi64> {
  %y = graph.argmax %x {axis = 1 : i64, keepdims = false} : (tensor<?x3x4xf32>) -> tensor<?x4xi64>
  return %y : tensor<?x4xi64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x3x4xf32>)
// CHECK:         [[t:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK:         %y = te.argmax [[t]] : (tensor<?x4x3xf32>) -> tensor<?x4xi64>

// -----

func.func @main(%x: tensor<?x10xf32>) -> tensor<?x10xf32> {
  %y = graph.softmax %x {axis = 1 : i64} : (tensor<?x10xf32>) -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x10xf32>)
// CHECK-NEXT:    %y = te.softmax %x : (tensor<?x10xf32>) -> tensor<?x10xf32>
// CHECK-NEXT:    func.return %y

// -----

// Three steps of twice the distance reach over five elements.
func.func @main(%x: tensor<5xi32>) -> tensor<5xi32> {
  %y = graph.cumsum %x {axis = 0 : i64, exclusive = false, reverse = false} : (tensor<5xi32>) -> tensor<5xi32>
  return %y : tensor<5xi32>
}
// CHECK-LABEL: func.func @main(%x: tensor<5xi32>)
// CHECK:         tensor.pad %x low[1] high[0]
// CHECK:         arith.addi
// CHECK:         tensor.pad {{.*}} low[2] high[0]
// CHECK:         arith.addi
// CHECK:         tensor.pad {{.*}} low[4] high[0]
// CHECK:         %y = linalg.generic

// -----

// What is added to floats from outside is -0.0, which leaves each as it is.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = graph.cumsum %x {axis = 0 : i64, exclusive = false, reverse = false} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<2xf32>)
// CHECK:         arith.constant -0.0
// CHECK:         %y = linalg.generic
// CHECK-NOT:     linalg.generic

// -----

func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi64>) {
  %y, %i = graph.top_k %x {k = 2 : i64, axis = 1 : i64, largest = true} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi64>)
  return %y, %i : tensor<?x2xf32>, tensor<?x2xi64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x4xf32>)
// CHECK-NEXT:    %i = te.top_k %x {k = 2 : i64, largest = true} : (tensor<?x4xf32>) -> tensor<?x2xi64>
// CHECK:         %y = te.gather_elements %x, %i {axis = 1 : i64}

// -----

func.func @main(%x: tensor<?x3x4xi32>) -> tensor<?x2x4xi64> {
  %y, %i = graph.top_k %x {k = 2 : i64, axis = 1 : i64, largest = false} : (tensor<?x3x4xi32>) -> (tensor<?x2x4xi32>, tensor<?x2x4xi64>)
  return %i : tensor<?x2x4xi64>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x3x4xi32>)
// CHECK:         [[found:%.*]] = te.top_k {{%.*}} {k = 2 : i64, largest = false} : (tensor<?x4x3xi32>) -> tensor<?x4x2xi64>
// CHECK:         %i = linalg.generic {{.*}} ins([[found]] : tensor<?x4x2xi64>)
