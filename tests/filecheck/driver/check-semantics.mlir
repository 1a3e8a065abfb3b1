// RUN: irkit-opt %s -p canonicalize,cse,dce --check-semantics | filecheck %s
// RUN: not irkit-opt %s -p cse,test-change-meaning,dce --check-semantics --seed=3 2>&1 | filecheck %s --check-prefix=CHANGED

// CHECK: graph.add %x, %x

// CHANGED: error: pass 'test-change-meaning' changed the meaning of the module: output 0: element [0, 0] was {{.*}}, is {{.*}} (12 of 12 differ)
// CHANGED: note: inputs were drawn with --seed=3
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = graph.add %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %0 : tensor<?x4xf32>
}
