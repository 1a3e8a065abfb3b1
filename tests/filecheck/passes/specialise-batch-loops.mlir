// RUN: irkit-opt %s -p 'specialise-batch{size=6}' | filecheck %s

// What a loop carries has the new size, and so have its body and what it leaves; one that carries no rows is as it was.
// CHECK-LABEL: func.func @halved(%x: tensor<6x4xf32>) -> tensor<6x4xf32>
func.func @halved(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {irkit.dims = [["n"]]} {
  %half = arith.constant dense<5.000000e-01> : tensor<f32>
  %one = arith.constant dense<1.000000e+00> : tensor<f32>
  %t = graph.reduce %x {kind = "sum", axes = array<i64: 0, 1>, keepdims = false} : (tensor<?x4xf32>) -> tensor<f32>
  %go = graph.compare %t, %one {predicate = "gt"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // CHECK: scf.while (%{{.*}} = %go, %{{.*}} = %x) : (tensor<i1>, tensor<6x4xf32>) -> (tensor<i1>, tensor<6x4xf32>) {
  %r:2 = scf.while (%g = %go, %a = %x) : (tensor<i1>, tensor<?x4xf32>) -> (tensor<i1>, tensor<?x4xf32>) {
    %c = tensor.extract %g[] : tensor<i1>
    // CHECK: scf.condition(%{{.*}}) %{{.*}}, %{{.*}} : tensor<i1>, tensor<6x4xf32>
    scf.condition(%c) %g, %a : tensor<i1>, tensor<?x4xf32>
  } do {
  ^bb0(%h: tensor<i1>, %y: tensor<?x4xf32>):
    // CHECK: graph.mul %{{.*}}, %half : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>
    %z = graph.mul %y, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
    %s = graph.reduce %z {kind = "sum", axes = array<i64: 0, 1>, keepdims = false} : (tensor<?x4xf32>) -> tensor<f32>
    %next = graph.compare %s, %one {predicate = "gt"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    scf.yield %next, %z : tensor<i1>, tensor<?x4xf32>
  }
  // CHECK: scf.while (%{{.*}} = %go, %{{.*}} = %t) : (tensor<i1>, tensor<f32>) -> (tensor<i1>, tensor<f32>) {
  %q:2 = scf.while (%g = %go, %a = %t) : (tensor<i1>, tensor<f32>) -> (tensor<i1>, tensor<f32>) {
    %c = tensor.extract %g[] : tensor<i1>
    scf.condition(%c) %g, %a : tensor<i1>, tensor<f32>
  } do {
  ^bb0(%h: tensor<i1>, %y: tensor<f32>):
    %z = graph.mul %y, %half : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %next = graph.compare %z, %one {predicate = "gt"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    scf.yield %next, %z : tensor<i1>, tensor<f32>
  }
  // CHECK: %last = graph.mul %{{.*}}, %{{.*}} : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>
  %last = graph.mul %r#1, %q#1 : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  func.return %last : tensor<?x4xf32>
}
