// Every function that can be run is, also at the levels below, where each has a schedule.
// RUN: irkit-opt %s --to=schedule --device=test4 --check-semantics | filecheck %s
// RUN: not irkit-opt %s -p cse,test-change-meaning --check-semantics --seed=3 2>&1 | filecheck %s --check-prefix=CHANGED

// CHECK: task.program @other_schedule of @other

// CHANGED: error: pass 'test-change-meaning' changed the meaning of @other: output 1: element [0, 0] was {{.*}}, is {{.*}} (8 of 8 differ)
// CHANGED: note: inputs were drawn with --seed=3
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = graph.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}
func.func @other(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = graph.relu %y : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = graph.add %x, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}
