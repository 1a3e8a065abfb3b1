// RUN: not irkit-opt %s -p outline-loops 2>&1 | filecheck %s

// CHECK: error: pass 'outline-loops' failed: 'scf.while' that asks for what it does not carry
func.func @main(%a: tensor<3xf64>, %go: tensor<i1>) -> tensor<3xf64> {
  %r = scf.while (%x = %a) : (tensor<3xf64>) -> (tensor<3xf64>) {
    %c = tensor.extract %go[] : tensor<i1>
    scf.condition(%c) %x : tensor<3xf64>
  } do {
  ^bb0(%y: tensor<3xf64>):
    %z = graph.add %y, %y : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    scf.yield %z : tensor<3xf64>
  }
  func.return %r : tensor<3xf64>
}
