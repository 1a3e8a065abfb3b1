// RUN: irkit-reduce %s -p test-change-meaning --check-semantics 2>&1 | filecheck %s --check-prefix=MEANING
// RUN: irkit-reduce %s -p test-crash-on-relu 2>&1 | filecheck %s --check-prefix=CRASH
// RUN: irkit-reduce %s -p 'canonicalize,test-break-dominance' 2>&1 | filecheck %s --check-prefix=BROKEN
// RUN: not irkit-reduce %s -p canonicalize 2>&1 | filecheck %s --check-prefix=FINE
// RUN: not irkit-reduce %s 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not irkit-reduce %s -p cse --to=task 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not irkit-reduce %s --test 'no-such-program %s' 2>&1 | filecheck %s --check-prefix=PROGRAM
// RUN: not irkit-reduce %s -p test-no-such 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: irkit-reduce %s -p test-crash-on-relu --max-tests=0 2>&1 | filecheck %s --check-prefix=NONE

// What is not the addition goes, and sizes of which any will do.
// MEANING:      irkit-reduce: UserError: pass 'test-change-meaning' changed the meaning of the module
// MEANING-NEXT: irkit-reduce: 12 ops became 4, in {{[0-9]+}} tests
// MEANING:      func.func @main([[X:%.*]]: tensor<?x1xf32>, [[W:%.*]]: tensor<1xf32>) -> tensor<?x1xf32>
// MEANING-NEXT: graph.add [[X]], [[W]]
// MEANING-NEXT: func.return
// MEANING-NOT:  graph

// A crash is the same if the same function raises it; the ops before it are not needed.
// CRASH:      irkit-reduce: ZeroDivisionError: in passes_for_tests.py, CrashOnReluPass.apply
// CRASH-NEXT: irkit-reduce: 12 ops became 4
// CRASH:      func.func @main([[Y:%.*]]: tensor<?x1xf32>)
// CRASH-NEXT: graph.relu [[Y]]
// CRASH-NEXT: func.return

// BROKEN:      irkit-reduce: BrokenPassError: operand _ of 'graph.add', _, does not dominate this use
// BROKEN-NEXT: irkit-reduce: 12 ops became 5
// BROKEN:      func.func @main([[Z:%.*]]: tensor<
// BROKEN-NEXT: [[A:%.*]] = arith.constant
// BROKEN-NEXT: graph.add [[Z]], [[A]]
// BROKEN-NEXT: func.return

// FINE:    error: the module does not fail: there is nothing to reduce
// NOTHING: error: give one of -p, --to and --test
// PROGRAM: error: --test: cannot run 'no-such-program'
// UNKNOWN: error: unknown pass 'test-no-such'
// NONE:    irkit-reduce: 12 ops became 12, in 0 tests

func.func @main(%x: tensor<?x8xf32>, %z: tensor<4xf32>) -> (tensor<?x8xf32>, tensor<4xf32>, tensor<?x16xf32>) {
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %0 = graph.add %x, %w : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = graph.relu %0 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = graph.neg %1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = graph.exp %z : (tensor<4xf32>) -> tensor<4xf32>
  %4 = graph.tanh %2 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %5 = graph.sin %4 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %6 = graph.cos %5 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %7 = graph.concat(%6, %x) {axis = 1 : i64} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  func.return %4, %3, %7 : tensor<?x8xf32>, tensor<4xf32>, tensor<?x16xf32>
}
