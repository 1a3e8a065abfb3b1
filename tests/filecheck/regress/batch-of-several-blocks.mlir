// RUN: not irkit-opt %s --to=task 2>&1 | filecheck %s

// Blocks behind the first have arguments of their own, of which the function's type says nothing.
// CHECK: error: pass 'convert-graph-to-tensor' requires the graph level
func.func @loop(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  cf.br ^header(%zero : i32)
^header(%i: i32):
  %more = arith.cmpi slt, %i, %n : i32
  cf.cond_br %more, ^body, ^exit
^body:
  %one = arith.constant 7 : i32
  %next = arith.addi %i, %one : i32
  cf.br ^header(%next : i32)
^exit:
  func.return %i : i32
}
