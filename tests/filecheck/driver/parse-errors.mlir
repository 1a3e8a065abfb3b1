// RUN: irkit-opt %s --split-input-file --verify-diagnostics
// RUN: not irkit-opt %s 2>&1 | filecheck %s

// One message, the line, a caret under what is wrong, and nothing else.
// CHECK:      {{^}}{{.*}}parse-errors.mlir:[[# @LINE + 5]]:8: error: unknown op 'graph.rleu'; did you mean 'graph.relu'?
// CHECK-NEXT: {{^}}    %y = graph.rleu %x : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: {{^}}         ^~~~~~~~~~
// CHECK-NOT:  {{.}}
func.func @op(%x: tensor<4xf32>) { // expected-error@+1 {{unknown op 'graph.rleu'; did you mean 'graph.relu'?}}
  %y = graph.rleu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @generic_op(%x: tensor<4xf32>) {
  // expected-error@+1 {{unknown op 'graph.rleu'; did you mean 'graph.relu'?}}
  %y = "graph.rleu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @dialect(%x: tensor<4xf32>) {
  // expected-error@+1 {{unknown dialect 'grahp' of op 'grahp.relu'; did you mean 'graph'?}}
  %y = grahp.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @value(%lhs: i32) {
  // expected-error@+1 {{use of undefined value '%lsh'; did you mean '%lhs'?}}
  %0 = arith.addi %lsh, %lhs : i32
  func.return
}

// -----

func.func @twice(%x: i32) {
  // expected-error@+1 {{SSA value %x is already defined}}
  %x = arith.addi %x, %x : i32
  func.return
}

// -----

func.func @type(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand is used with type tensor<4xf64>, but has been previously used or defined with type tensor<4xf32>}}
  %y = graph.relu %x : (tensor<4xf64>) -> tensor<4xf64>
  func.return
}

// -----

func.func @property(%x: tensor<4xf32>) {
  // expected-error@+1 {{'graph.clip'}}
  %y = graph.clip %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @property_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{should be of base attribute integer}}
  %y = graph.softmax %x {axis = "last"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @block() {
  // expected-error@+1 {{use of undefined block '^nowhere'}}
  cf.br ^nowhere
}

// -----

func.func @block_twice() {
  cf.br ^a
^a:
  cf.br ^a
// expected-error@+1 {{block '^a' is already defined}}
^a:
  func.return
}

// -----

// expected-error@+1 {{expected an op}}
}

// -----

// expected-error@+1 {{expected argument or type}}
func.func @cut(
