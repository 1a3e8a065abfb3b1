// RUN: irkit-opt %s -p checks-to-limits,dce --split-input-file | filecheck %s
// RUN: irkit-opt %s -p checks-to-limits --split-input-file --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// Half of the greatest number is what may be divided by a half; NaN never was taken.
// CHECK: irkit.model
// CHECK-SAME: \22outputs\22: [\22y\22]
// CHECK-SAME: \22checks\22: {}
// CHECK-SAME: \22limits\22: [{\22low\22: [-8.988465674311579e+307, -1.7976931348623157e+308], \22high\22: [8.988465674311579e+307, 1.7976931348623157e+308], \22nan\22: [false], \22message\22: \22too large\22}]
// CHECK: func.func @main
// CHECK-NOT: graph.abs
// CHECK: func.return %{{.*}} : tensor<?x2xf64>
builtin.module attributes {irkit.model = "{\22kind\22: \22transformer\22, \22inputs\22: [\22x\22], \22outputs\22: [\22y\22, \22check\22], \22methods\22: {}, \22checks\22: {\22check\22: \22too large\22}}"} {
  func.func @main(%x: tensor<?x2xf64>) -> (tensor<?x2xf64>, tensor<?xf32>) attributes {irkit.inputs = ["x"], irkit.outputs = ["y", "check"]} {
    %scale = arith.constant dense<[0.5, 2.0]> : tensor<2xf64>
    %most = arith.constant dense<1.7976931348623157e+308> : tensor<1xf64>
    %0 = graph.div %x, %scale : (tensor<?x2xf64>, tensor<2xf64>) -> tensor<?x2xf64>
    %1 = graph.abs %0 : (tensor<?x2xf64>) -> tensor<?x2xf64>
    %2 = graph.compare %1, %most {predicate = "le"} : (tensor<?x2xf64>, tensor<1xf64>) -> tensor<?x2xi1>
    %3 = graph.cast %2 {to = f32} : (tensor<?x2xi1>) -> tensor<?x2xf32>
    %4 = graph.reduce %3 {kind = "min", axes = array<i64: 1>, keepdims = false} : (tensor<?x2xf32>) -> tensor<?xf32>
    func.return %0, %4 : tensor<?x2xf64>, tensor<?xf32>
  }
}

// -----

// Of two columns one is a product of two of the input: it is checked as before, the other is not.
// CHECK: \22checks\22: {\22check\22: \22too large\22}
// CHECK-SAME: \22limits\22: [{\22low\22: [-3.4028234663852886e+38, -Infinity], \22high\22: [3.4028234663852886e+38, Infinity], \22nan\22: [false, true]
// CHECK: dense<1> : tensor<1xi64>
// CHECK: graph.gather %{{.*}} {axis = 1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?x1xf32>
// CHECK: graph.reduce %{{.*}} : (tensor<?x1xf32>) -> tensor<?xf32>
builtin.module attributes {irkit.model = "{\22kind\22: \22transformer\22, \22inputs\22: [\22x\22], \22outputs\22: [\22y\22, \22check\22], \22methods\22: {}, \22checks\22: {\22check\22: \22too large\22}}"} {
  func.func @main(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?xf32>) attributes {irkit.inputs = ["x"], irkit.outputs = ["y", "check"]} {
    %first = arith.constant dense<0> : tensor<1xi64>
    %second = arith.constant dense<1> : tensor<1xi64>
    %most = arith.constant dense<3.4028234663852886e+38> : tensor<1xf32>
    %a = graph.gather %x, %first {axis = 1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?x1xf32>
    %b = graph.gather %x, %second {axis = 1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?x1xf32>
    %p = graph.mul %a, %b : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
    %0 = graph.concat(%a, %p) {axis = 1 : i64} : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
    %1 = graph.abs %0 : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %2 = graph.compare %1, %most {predicate = "le"} : (tensor<?x2xf32>, tensor<1xf32>) -> tensor<?x2xi1>
    %3 = graph.cast %2 {to = f32} : (tensor<?x2xi1>) -> tensor<?x2xf32>
    %4 = graph.reduce %3 {kind = "min", axes = array<i64: 1>, keepdims = false} : (tensor<?x2xf32>) -> tensor<?xf32>
    func.return %0, %4 : tensor<?x2xf32>, tensor<?xf32>
  }
}

// -----

// A cosine goes up and down.
// CHECK: graph.cos
// CHECK: graph.reduce
// MISSED: no column of it hangs on one column of the input, in its order
builtin.module attributes {irkit.model = "{\22kind\22: \22transformer\22, \22inputs\22: [\22x\22], \22outputs\22: [\22check\22], \22methods\22: {}, \22checks\22: {\22check\22: \22no\22}}"} {
  func.func @main(%x: tensor<?x2xf32>) -> tensor<?xf32> attributes {irkit.inputs = ["x"], irkit.outputs = ["check"]} {
    %zero = arith.constant dense<0.0> : tensor<1xf32>
    %0 = graph.cos %x : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %1 = graph.compare %0, %zero {predicate = "ge"} : (tensor<?x2xf32>, tensor<1xf32>) -> tensor<?x2xi1>
    %2 = graph.cast %1 {to = f32} : (tensor<?x2xi1>) -> tensor<?x2xf32>
    %3 = graph.reduce %2 {kind = "min", axes = array<i64: 1>, keepdims = false} : (tensor<?x2xf32>) -> tensor<?xf32>
    func.return %3 : tensor<?xf32>
  }
}

// -----

// A product of finite rows overflows where they are large alone: all that it is of is bounded instead.
// CHECK: \22largest\22: 4.49423283715579e+307
// CHECK: graph.matmul
// CHECK-NEXT: func.return %{{.*}} : tensor<?x1xf64>
builtin.module attributes {irkit.model = "{\22kind\22: \22transformer\22, \22inputs\22: [\22x\22], \22outputs\22: [\22y\22, \22check\22], \22methods\22: {}, \22allow_nan\22: false, \22allow_infinity\22: false, \22checks\22: {\22check\22: \22too large\22}}"} {
  func.func @main(%x: tensor<?x2xf64>) -> (tensor<?x1xf64>, tensor<?xf32>) attributes {irkit.inputs = ["x"], irkit.outputs = ["y", "check"]} {
    %w = arith.constant dense<[[1.0], [0.5]]> : tensor<2x1xf64>
    %max = arith.constant dense<1.7976931348623157e+308> : tensor<1xf64>
    %y = graph.matmul %x, %w : (tensor<?x2xf64>, tensor<2x1xf64>) -> tensor<?x1xf64>
    %size = graph.abs %y : (tensor<?x1xf64>) -> tensor<?x1xf64>
    %finite = graph.compare %size, %max {predicate = "le"} : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xi1>
    %bits = graph.cast %finite {to = f32} : (tensor<?x1xi1>) -> tensor<?x1xf32>
    %check = graph.reduce %bits {kind = "min", axes = array<i64: 1>, keepdims = false} : (tensor<?x1xf32>) -> tensor<?xf32>
    func.return %y, %check : tensor<?x1xf64>, tensor<?xf32>
  }
}

// -----

// What an exponential comes to is not asked of sums and products.
// CHECK: \22largest\22: null
// CHECK: graph.exp
// CHECK: graph.reduce
builtin.module attributes {irkit.model = "{\22kind\22: \22transformer\22, \22inputs\22: [\22x\22], \22outputs\22: [\22y\22, \22check\22], \22methods\22: {}, \22allow_nan\22: false, \22allow_infinity\22: false, \22checks\22: {\22check\22: \22too large\22}}"} {
  func.func @main(%x: tensor<?x1xf64>) -> (tensor<?x1xf64>, tensor<?xf32>) attributes {irkit.inputs = ["x"], irkit.outputs = ["y", "check"]} {
    %max = arith.constant dense<1.7976931348623157e+308> : tensor<1xf64>
    %y = graph.exp %x : (tensor<?x1xf64>) -> tensor<?x1xf64>
    %size = graph.abs %y : (tensor<?x1xf64>) -> tensor<?x1xf64>
    %finite = graph.compare %size, %max {predicate = "le"} : (tensor<?x1xf64>, tensor<1xf64>) -> tensor<?x1xi1>
    %bits = graph.cast %finite {to = f32} : (tensor<?x1xi1>) -> tensor<?x1xf32>
    %check = graph.reduce %bits {kind = "min", axes = array<i64: 1>, keepdims = false} : (tensor<?x1xf32>) -> tensor<?xf32>
    func.return %y, %check : tensor<?x1xf64>, tensor<?xf32>
  }
}
