// RUN: not irkit-opt %s --to=schedule --device=test4 2>&1 | filecheck %s
// RUN: not irkit-opt %s --to=schedule --device=h200 2>&1 | filecheck %s

// What no rKernel computes with is refused before anything is scheduled.
// CHECK: error: pass 'partition-rtasks' failed: @map_0 (from graph.relu): elements of type f16
func.func @main(%x: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %0 = graph.relu %x : (tensor<?x8xf16>) -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}
