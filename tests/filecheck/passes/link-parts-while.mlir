// RUN: irkit-opt %s --to=schedule --device=cpu2 --check-semantics | filecheck %s
// RUN: irkit-opt %s -t 'numba{target=cpu}' --device=cpu2 | filecheck %s --check-prefix=CPU
// RUN: not irkit-opt %s --to=schedule --device=h200 2>&1 | filecheck %s --check-prefix=GPU
// RUN: irkit-run %s --level=schedule --device=cpu2 --seed=3 > /dev/null

// What is asked for is a buffer of its own, which each turn writes anew; the rest is updated where it is.
// CHECK:      func.func @main(
// CHECK:        scf.while
// CHECK:          func.call @main_part0(
// CHECK:      task.composite @main_schedule of @main
// CHECK-NEXT:   %a = task.buffer {space = "input", port = 0 : i64} : tensor<4xf64>
// CHECK-NEXT:   %[[R:.*]] = task.buffer {space = "output", port = 0 : i64} : tensor<4xf64>
// CHECK-NEXT:   %[[N:.*]] = task.buffer {space = "output", port = 1 : i64} : tensor<i64>
// CHECK-NEXT:   %[[GO:.*]] = task.buffer {space = "arena", offset = 0 : i64} : tensor<i1>
// CHECK-NEXT:   task.run @main_part1_schedule reads(%a) writes(%[[GO]], %[[R]], %[[N]])
// CHECK-NEXT:   task.while %[[GO]] {
// CHECK-NEXT:     task.run @main_part0_schedule writes(%[[GO]]) state(%[[R]], %[[N]])
// CHECK-NEXT:   }
// CHECK-NEXT: }

// CPU:          steps=(Ran(0, {{[0-9]+}}, (0, 0)), Repeated(Operand(base=0, offset=0, per_row=0), (Ran({{[0-9]+}}, {{[0-9]+}}, (0, 0)),)),),

// GPU: error: pass 'link-parts' failed: 'scf.while' in a schedule for a GPU: blocks walk a number of turns
func.func @main(%a: tensor<4xf64>) -> (tensor<4xf64>, tensor<i64>) {
  %go = arith.constant dense<true> : tensor<i1>
  %zero = arith.constant dense<0> : tensor<i64>
  %r:3 = scf.while (%g = %go, %x = %a, %n = %zero) : (tensor<i1>, tensor<4xf64>, tensor<i64>) -> (tensor<i1>, tensor<4xf64>, tensor<i64>) {
    %c = tensor.extract %g[] : tensor<i1>
    scf.condition(%c) %g, %x, %n : tensor<i1>, tensor<4xf64>, tensor<i64>
  } do {
  ^bb0(%h: tensor<i1>, %y: tensor<4xf64>, %m: tensor<i64>):
    %half = arith.constant dense<0.5> : tensor<f64>
    %z = graph.mul %y, %half : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %one = arith.constant dense<1> : tensor<i64>
    %k = graph.add %m, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %most = arith.constant dense<7> : tensor<i64>
    %q = graph.compare %k, %most {predicate = "lt"} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    scf.yield %q, %z, %k : tensor<i1>, tensor<4xf64>, tensor<i64>
  }
  func.return %r#1, %r#2 : tensor<4xf64>, tensor<i64>
}
