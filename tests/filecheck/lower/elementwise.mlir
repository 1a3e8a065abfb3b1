// RUN: irkit-opt %s -p convert-graph-to-tensor --check-semantics --split-input-file | filecheck %s

// The destination takes its size from the argument; operands that broadcast are read by fewer loops.
func.func @main(%x: tensor<?x1x4xf32>, %b: tensor<3x1xf32>) -> tensor<?x3x4xf32> {
  %y = graph.add %x, %b : (tensor<?x1x4xf32>, tensor<3x1xf32>) -> tensor<?x3x4xf32>
  return %y : tensor<?x3x4xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<?x1x4xf32>
// CHECK-NEXT:    [[c0:%.*]] = arith.constant 0 : index
// CHECK-NEXT:    [[n:%.*]] = tensor.dim %x, [[c0]] : tensor<?x1x4xf32>
// CHECK-NEXT:    [[e:%.*]] = tensor.empty([[n]]) : tensor<?x3x4xf32>
// CHECK-NEXT:    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, 0, d2)>, affine_map<(d0, d1, d2) -> (d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %b : tensor<?x1x4xf32>, tensor<3x1xf32>) outs([[e]] : tensor<?x3x4xf32>) {
// CHECK-NEXT:    ^bb0([[p:%.*]]: f32, [[q:%.*]]: f32, [[o:%.*]]: f32):
// CHECK-NEXT:      [[s:%.*]] = arith.addf [[p]], [[q]] : f32
// CHECK-NEXT:      linalg.yield [[s]] : f32
// CHECK-NEXT:    } -> tensor<?x3x4xf32>

// -----

// A constant of one element stands in the body.
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %c = arith.constant dense<2.5> : tensor<1xf64>
  %y = graph.mul %x, %c : (tensor<4xf64>, tensor<1xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}
// CHECK-LABEL: func.func @main(%x: tensor<4xf64>)
// CHECK-NOT:     dense
// CHECK:         ins(%x : tensor<4xf64>)
// CHECK:         [[c:%.*]] = arith.constant 2.500000e+00 : f64
// CHECK-NEXT:    arith.mulf {{%.*}}, [[c]] : f64

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>)
// CHECK:         [[one:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:    [[a:%.*]] = arith.negf {{%.*}} : f32
// CHECK-NEXT:    [[b:%.*]] = math.exp [[a]] : f32
// CHECK-NEXT:    [[c:%.*]] = arith.addf [[one]], [[b]] : f32
// CHECK-NEXT:    [[d:%.*]] = arith.divf [[one]], [[c]] : f32
// CHECK-NEXT:    linalg.yield [[d]] : f32

// -----

// NaN is unequal to all, and less than nothing.
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %a = graph.compare %x, %y {predicate = "ne"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %b = graph.compare %x, %y {predicate = "le"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %c = graph.is_nan %x : (tensor<4xf32>) -> tensor<4xi1>
  %d = graph.compare %i, %i {predicate = "lt"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return %a, %b, %c, %d : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}
// CHECK:         %a = linalg.generic
// CHECK:         arith.cmpf une,
// CHECK:         %b = linalg.generic
// CHECK:         arith.cmpf ole,
// CHECK:         %c = linalg.generic
// CHECK:         arith.cmpf uno, [[x:%[0-9]+]], [[x]] : f32
// CHECK:         %d = linalg.generic
// CHECK:         arith.cmpi slt,

// -----

// A conversion to the type that is there already is no op.
func.func @main(%x: tensor<4xi1>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = graph.cast %x {to = f32} : (tensor<4xi1>) -> tensor<4xf32>
  %b = graph.cast %y {to = f32} : (tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<4xi1>
// CHECK:         arith.uitofp {{%.*}} : i1 to f32
// CHECK-NOT:     linalg.generic
// CHECK:         func.return %a, %y
