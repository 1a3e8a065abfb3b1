// RUN: irkit-opt %s -p recompute-parts,canonicalize,cse,dce | filecheck %s
// RUN: irkit-opt %s -p 'recompute-parts{device="h200"}' | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -p recompute-parts --check-semantics > /dev/null
// RUN: irkit-opt %s -p recompute-parts --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// A difference of neighbours of differences of neighbours: three parts of the sum, and nothing whole. Where a
// dimension is broadcast, its one element is.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     tensor<800x804xf64> -> tensor<800x803xf64>
// CHECK:         graph.add %{{.*}}, %y : (tensor<800x800xf64>, tensor<800x1xf64>) -> tensor<800x800xf64>
// CHECK:         graph.add %{{.*}}, %y : (tensor<800x800xf64>, tensor<800x1xf64>) -> tensor<800x800xf64>
// CHECK:         graph.add %{{.*}}, %y : (tensor<800x800xf64>, tensor<800x1xf64>) -> tensor<800x800xf64>
// CHECK-NOT:     graph.add
// CHECK:         func.return
// GPU-LABEL: func.func @main
// GPU-NEXT:    graph.add %x, %y : (tensor<800x804xf64>, tensor<800x1xf64>) -> tensor<800x804xf64>
// MISSED: something reads all of it
func.func @main(%x: tensor<800x804xf64>, %y: tensor<800x1xf64>) -> (tensor<800x800xf64>, tensor<800x402xf64>) {
  %s = graph.add %x, %y : (tensor<800x804xf64>, tensor<800x1xf64>) -> tensor<800x804xf64>
  %0 = graph.slice %s {offsets = array<i64: 0, 1>, sizes = array<i64: 800, 801>, strides = array<i64: 1, 1>} : (tensor<800x804xf64>) -> tensor<800x801xf64>
  %1 = graph.slice %s {offsets = array<i64: 0, 2>, sizes = array<i64: 800, 801>, strides = array<i64: 1, 1>} : (tensor<800x804xf64>) -> tensor<800x801xf64>
  %d = graph.sub %0, %1 : (tensor<800x801xf64>, tensor<800x801xf64>) -> tensor<800x801xf64>
  %2 = graph.slice %d {offsets = array<i64: 0, 0>, sizes = array<i64: 800, 800>, strides = array<i64: 1, 1>} : (tensor<800x801xf64>) -> tensor<800x800xf64>
  %3 = graph.slice %d {offsets = array<i64: 0, 1>, sizes = array<i64: 800, 800>, strides = array<i64: 1, 1>} : (tensor<800x801xf64>) -> tensor<800x800xf64>
  %e = graph.mul %2, %3 : (tensor<800x800xf64>, tensor<800x800xf64>) -> tensor<800x800xf64>
  %n = graph.neg %x : (tensor<800x804xf64>) -> tensor<800x804xf64>
  %4 = graph.slice %n {offsets = array<i64: 0, 0>, sizes = array<i64: 800, 402>, strides = array<i64: 1, 2>} : (tensor<800x804xf64>) -> tensor<800x402xf64>
  %5 = graph.slice %n {offsets = array<i64: 0, 1>, sizes = array<i64: 800, 402>, strides = array<i64: 1, 2>} : (tensor<800x804xf64>) -> tensor<800x402xf64>
  %f = graph.max %4, %5 : (tensor<800x402xf64>, tensor<800x402xf64>) -> tensor<800x402xf64>
  func.return %e, %f : tensor<800x800xf64>, tensor<800x402xf64>
}
