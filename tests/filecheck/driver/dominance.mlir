// RUN: irkit-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s
// RUN: not irkit-opt %s --split-input-file 2>&1 | filecheck %s --check-prefix=FIRST

// FIRST:      dominance.mlir:[[# @LINE + 6]]:8: error: operand 0 of 'arith.addi', result 0 of 'arith.constant', does not dominate this use
// FIRST-NEXT:   %0 = arith.addi %1, %1 : i32
// FIRST-NEXT: {{^         }}^~~~~~~~~~
// FIRST-NEXT: dominance.mlir:{{[0-9]+}}:8: note: result 0 of 'arith.constant' is defined here, later in the same block
func.func @same_block() -> i32 {
  // expected-error@below {{operand 0 of 'arith.addi', result 0 of 'arith.constant', does not dominate this use}}
  %0 = arith.addi %1, %1 : i32
  // expected-note@below {{result 0 of 'arith.constant' is defined here, later in the same block}}
  %1 = arith.constant 1 : i32
  func.return %0 : i32
}

// -----

func.func @itself(%a: i32) -> i32 {
  // expected-error@+1 {{operand 1 of 'arith.addi', '%loop', does not dominate this use}}
  %loop = arith.addi %a, %loop : i32
  func.return %loop : i32
}

// -----

func.func @out_of_region(%c: i1) {
  scf.if %c {
    // expected-error@+1 {{'%later', does not dominate this use}}
    %0 = arith.addi %later, %later : i32
  }
  // expected-note@+1 {{'%later' is defined here, later in an enclosing block}}
  %later = arith.constant 1 : i32
  func.return
}

// -----

func.func @sibling_branch(%c: i1) -> i32 {
  cf.cond_br %c, ^left, ^right
^left:
  // expected-note@+1 {{'%one' is defined here, in a block that does not dominate}}
  %one = arith.constant 1 : i32
  cf.br ^join
^right:
  cf.br ^join
^join:
  // expected-error@+1 {{operand 0 of 'func.return', '%one', does not dominate this use}}
  func.return %one : i32
}

// -----

// CHECK-LABEL: func.func @dominating_block
func.func @dominating_block(%c: i1) -> i32 {
  %one = arith.constant 1 : i32
  cf.cond_br %c, ^left, ^right
^left:
  cf.br ^join
^right:
  cf.br ^join
^join:
  func.return %one : i32
}

// -----

// A loop: the header dominates the body, and the body its back edge.
// CHECK-LABEL: func.func @loop
func.func @loop(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  cf.br ^header(%zero : i32)
^header(%i: i32):
  %more = arith.cmpi slt, %i, %n : i32
  cf.cond_br %more, ^body, ^exit
^body:
  %one = arith.constant 1 : i32
  %next = arith.addi %i, %one : i32
  cf.br ^header(%next : i32)
^exit:
  func.return %i : i32
}

// -----

// Any value may be used in a block that nothing reaches, as in MLIR.
// CHECK-LABEL: func.func @unreachable
func.func @unreachable() -> i32 {
  %zero = arith.constant 0 : i32
  func.return %zero : i32
^dead:
  func.return %late : i32
^never:
  %late = arith.constant 1 : i32
  cf.br ^dead
}

// -----

// The ops of a module itself may stand in any order.
// CHECK-LABEL: builtin.module
// CHECK-NEXT:    "foo.use"(%late)
"foo.use"(%late) : (i32) -> ()
%late = "foo.def"() : () -> i32
