// RUN: not irkit-opt %s -t 'numba{target=cpu}' --device=cpu2 2>&1 | filecheck %s
// CHECK: {{.*}}: error: 'func.func' has a block without a terminator

func.func @loop(%n: i32) -> i32 {
  %zero = arith.constant 1 : i32
  cf.br ^header(%zero : i32)
^header(%i: i32):
  %more = arith.cmpi slt, %i, %n : i32
  cf.cond_br %more, ^body, ^exit
^body:
  %one = arith.constant 1 : i32
  %next = arith.addi %i, %one : i32
  cf.br ^header(%next : i32)
^exit:
}
