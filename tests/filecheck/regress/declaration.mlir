// RUN: not irkit-opt %s --to=schedule --device=test4 2>&1 | filecheck %s
// A declaration has nothing to outline or to schedule.
// CHECK: error: pass 'pin-residents' failed: the module has no task.program

func.func private @declared(tensor<?x8xf32>)
