// RUN: irkit-opt %s --to=schedule --device=test4 --verify-roundtrip | filecheck %s
// RUN: irkit-opt %s --to=schedule --device=test4 -o %t.mlir && not --crash irkit-opt %t.mlir -p cse,test-lose-attribute --verify-roundtrip 2>&1 | filecheck %s --check-prefix=LOST
// RUN: irkit-opt %t.mlir -p cse,test-lose-attribute | filecheck %s --check-prefix=OFF

// What every pass leaves comes back from both forms.
// CHECK: task.append
// LOST:  error: the custom form reads back as a different module
// LOST:  note: pass 'test-lose-attribute' left IR that does not survive being printed
// OFF-NOT: lost
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = graph.softmax %x {axis = 1 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
