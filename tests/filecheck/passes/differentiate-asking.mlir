// RUN: irkit-opt %s -p 'differentiate{with_respect_to=x}' | filecheck %s
// RUN: irkit-opt %s -p 'differentiate{with_respect_to=x}' | irkit-opt - --to=tensor --check-semantics > /dev/null
// RUN: irkit-opt %s -p 'differentiate{mode=forward with_respect_to=x}' | filecheck %s --check-prefix=FORWARD
// RUN: not irkit-opt %s -p 'differentiate{function=unbounded with_respect_to=x}' 2>&1 | filecheck %s --check-prefix=REFUSED

// The counter is below 7 before each round but the first: seven rounds, each run at most once, with a row for each of
// what they begin with, and seven back.
// CHECK-LABEL: func.func @main
// CHECK:         %[[LAST:.*]] = arith.constant 7 : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[LAST]] step %{{.*}} -> (tensor<i1>, tensor<4xf64>, tensor<i64>, tensor<7xi1>, tensor<7x4xf64>) {
// CHECK:           scf.while
// CHECK:           } do {
// CHECK:             graph.sin
// CHECK:             %[[STOP:.*]] = arith.constant dense<false> : tensor<i1>
// CHECK:             scf.yield %[[STOP]],
// CHECK:         scf.for {{.*}} -> (tensor<4xf64>) {
// CHECK:           scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (tensor<i1>, tensor<4xf64>)
// CHECK:           } do {
// CHECK:             graph.cos
// CHECK:             graph.mul
// CHECK:             scf.yield

// FORWARD-LABEL: func.func @main
// FORWARD:         scf.while {{.*}} : (tensor<i1>, tensor<4xf64>, tensor<i64>, tensor<4xf64>)
// FORWARD:           graph.sin
// FORWARD:           graph.cos
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %go = arith.constant dense<true> : tensor<i1>
  %none = arith.constant dense<0> : tensor<i64>
  %r:3 = scf.while (%g = %go, %y = %x, %n = %none) : (tensor<i1>, tensor<4xf64>, tensor<i64>) -> (tensor<i1>, tensor<4xf64>, tensor<i64>) {
    %c = tensor.extract %g[] : tensor<i1>
    scf.condition(%c) %g, %y, %n : tensor<i1>, tensor<4xf64>, tensor<i64>
  } do {
  ^bb0(%h: tensor<i1>, %z: tensor<4xf64>, %m: tensor<i64>):
    %one = arith.constant dense<1> : tensor<i64>
    %most = arith.constant dense<7> : tensor<i64>
    %half = arith.constant dense<0.5> : tensor<f64>
    %next = graph.sin %z : (tensor<4xf64>) -> tensor<4xf64>
    %count = graph.add %m, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %sum = graph.reduce %next {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<4xf64>) -> tensor<f64>
    %large = graph.compare %sum, %half {predicate = "gt"} : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %few = graph.compare %most, %count {predicate = "gt"} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %again = graph.and %large, %few : (tensor<i1>, tensor<i1>) -> tensor<i1>
    scf.yield %again, %next, %count : tensor<i1>, tensor<4xf64>, tensor<i64>
  }
  func.return %r#1 : tensor<4xf64>
}

// REFUSED: differentiate-asking.mlir:[[# @LINE + 3]]:{{.*}}: a loop that goes on as long as data say so cannot be differentiated in reverse mode
func.func @unbounded(%x: tensor<4xf64>) -> tensor<4xf64> {
  %go = arith.constant dense<true> : tensor<i1>
  %r:2 = scf.while (%g = %go, %y = %x) : (tensor<i1>, tensor<4xf64>) -> (tensor<i1>, tensor<4xf64>) {
    %c = tensor.extract %g[] : tensor<i1>
    scf.condition(%c) %g, %y : tensor<i1>, tensor<4xf64>
  } do {
  ^bb0(%h: tensor<i1>, %z: tensor<4xf64>):
    %half = arith.constant dense<0.5> : tensor<f64>
    %next = graph.sin %z : (tensor<4xf64>) -> tensor<4xf64>
    %sum = graph.reduce %next {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<4xf64>) -> tensor<f64>
    %again = graph.compare %sum, %half {predicate = "gt"} : (tensor<f64>, tensor<f64>) -> tensor<i1>
    scf.yield %again, %next : tensor<i1>, tensor<4xf64>
  }
  func.return %r#1 : tensor<4xf64>
}
