// RUN: not irkit-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// What is reported but not expected, and what is expected but not reported, are errors.
// CHECK:      verify-diagnostics.mlir:[[# @LINE + 4]]:8: error: unexpected error: 'graph.relu' expects result of type
// CHECK-NEXT:   %y = graph.relu
// CHECK-NEXT:        ^~~~~~~~~~
func.func @unexpected(%x: tensor<4xf32>) {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

// CHECK: verify-diagnostics.mlir:[[# @LINE + 2]]:6: error: expected error "something else" was not produced
func.func @not_produced(%x: tensor<4xf32>) {
  // expected-error@+1 {{something else}}
  func.return
}

// -----

// The message is right, the line is not.
// CHECK: verify-diagnostics.mlir:[[# @LINE + 4]]:8: error: unexpected error: 'graph.relu' expects
// CHECK: verify-diagnostics.mlir:[[# @LINE + 2]]:6: error: expected error "'graph.relu' expects" was not produced
func.func @wrong_line(%x: tensor<4xf32>) {
  // expected-error@+2 {{'graph.relu' expects}}
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

// Every way to name a line.
// CHECK-NOT: error:
func.func @same_line(%x: tensor<4xf32>) {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32> // expected-error {{expects result}}
  func.return
}

// -----

func.func @above(%x: tensor<4xf32>) {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>
  // expected-error@above {{expects result}}
  func.return
}

// -----

func.func @below(%x: tensor<4xf32>) {
  // expected-error@below {{expects result}}
  // This comment stands between.
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @regex(%x: tensor<4xf32>) {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>
  // expected-error-re@-1 {{expects result of type tensor<[0-9]+xf32>, got}}
  func.return
}
