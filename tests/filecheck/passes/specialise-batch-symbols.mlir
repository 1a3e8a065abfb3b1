// RUN: irkit-opt %s -p 'specialise-batch{size=6 symbol=t}' | filecheck %s
// RUN: not irkit-opt %s -p 'specialise-batch{size=6}' 2>&1 | filecheck %s --check-prefix=WHICH
// RUN: not irkit-opt %s -p 'specialise-batch{size=6 symbol=k}' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not irkit-opt %s -p 'specialise-batch{size=0 symbol=t}' 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not irkit-opt %s --to=tensor 2>&1 | filecheck %s --check-prefix=TWO
// RUN: irkit-opt %s -p 'specialise-batch{size=6 symbol=t},convert-graph-to-tensor' | filecheck %s --check-prefix=ONE

// CHECK: func.func @main(%x: tensor<?x6xf32>) -> tensor<?xf32> attributes {irkit.dims = {{\[\[}}"n"]]} {
// CHECK-NEXT: graph.reduce %x {{.*}} : (tensor<?x6xf32>) -> tensor<?xf32>
// WHICH: pass 'specialise-batch' failed: symbol: it must be one of n, t
// NONE: pass 'specialise-batch' failed: symbol = k: the module has n, t
// SIZE: pass 'specialise-batch' failed: size = 0: a batch has 1 row or more here
// TWO: @main has 2 open symbols, 'n' and 't': a program is compiled for any size of one alone (fix others with specialise-batch{size=N symbol=t})
// ONE: linalg.generic
func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> attributes {irkit.dims = [["n", "t"]]} {
  %y = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<?x?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
