// RUN: irkit-opt %s --to=schedule --device=cpu2 --check-semantics | filecheck %s
// RUN: irkit-opt %s -t 'numba{target=cpu}' --device=cpu2 | filecheck %s --check-prefix=CPU
// RUN: irkit-opt %s --to=schedule --device=h200 | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -t 'numba{target=cuda}' --device=h200 | filecheck %s --check-prefix=CUDA
// RUN: irkit-run %s --level=schedule --device=cpu2 --seed=3 > /dev/null

// Both arrays are results, updated where they are, in the same bytes from the first iteration to the last; the row
// that is read moves by its 24 bytes. The number that is carried is nobody's result.
// CHECK:      func.func @main(
// CHECK:        scf.for
// CHECK:          func.call @main_part0(
// CHECK:      task.composite @main_schedule of @main attributes {device = @cpu2, link_bytes = 256 : i64, modes = ["serial", "per-op", "per-wave", "persistent"], verified = "
// CHECK-NEXT:   %a = task.buffer {space = "input", port = 0 : i64} : tensor<9x3xf64>
// CHECK-NEXT:   %b = task.buffer {space = "input", port = 1 : i64} : tensor<9x3xf64>
// CHECK-NEXT:   %[[R0:.*]] = task.buffer {space = "output", port = 0 : i64} : tensor<9x3xf64>
// CHECK-NEXT:   %[[R1:.*]] = task.buffer {space = "output", port = 1 : i64} : tensor<3xf64>
// CHECK-NEXT:   %[[N:.*]] = task.buffer {space = "arena", offset = 0 : i64} : tensor<i64>
// CHECK-NEXT:   task.run @main_part1_schedule reads(%b, %a) writes(%[[R1]], %[[R0]], %[[N]])
// CHECK-NEXT:   task.repeat 8 {
// CHECK-NEXT:     task.run @main_part0_schedule reads(%b at 0 step [24]) writes(%[[R0]] at 24 step [24]) state(%[[N]], %[[R1]])
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GPU:      task.composite @main_schedule of @main attributes {device = @h200, link_bytes = 256 : i64, modes = ["serial", "per-op", "per-wave", "persistent"], verified = "
// GPU:        task.repeat 8 {
// GPU-NEXT:     task.run @main_part0_schedule reads(%b at 0 step [24]) writes(%{{.*}} at 24 step [24])

// CUDA:     def meet(meeting, target):
// CUDA:     def persistent(records, bases, counters, meeting, steps, epoch, rows, rows_padded):
// CUDA:             if thread == 0 and met > 0:
// CUDA-NEXT:            meet(meeting, uint32((before + met) * block_count()))
// CUDA:     def wave(
// CUDA:     def place(bases, moves, first, last, turns, trips):
// CUDA:     def op_0(
// CUDA:         steps=(Ran(0, {{[0-9]+}}, (0, 0)), Repeated(8, (Ran({{[0-9]+}}, {{[0-9]+}}, (0, 2)),)),),
// CUDA-NEXT:    moving=(Moving(4, 0, (24,)), Moving(5, 24, (24,)), ),

// CPU:      from irkit.schedule.tables import Moving, Ran, Repeated
// CPU:      PROGRAM = Program(
// CPU:          steps=(Ran(0, {{[0-9]+}}, (0, 0)), Repeated(8, (Ran({{[0-9]+}}, {{[0-9]+}}, (0, 2)),)),),
// CPU-NEXT:     moving=(Moving(4, 0, (24,)), Moving(5, 24, (24,)), ),
func.func @main(%a: tensor<9x3xf64>, %b: tensor<9x3xf64>) -> (tensor<9x3xf64>, tensor<3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %first = tensor.extract_slice %b[0, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<3xf64>
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %a, %s = %first) -> (tensor<9x3xf64>, tensor<3xf64>) {
    %n = arith.index_cast %i : index to i64
    %t = tensor.from_elements %n : tensor<i64>
    %f = graph.cast %t {to = f64} : (tensor<i64>) -> tensor<f64>
    %row = tensor.extract_slice %b[%i, 0] [1, 3] [1, 1] : tensor<9x3xf64> to tensor<3xf64>
    %y = graph.mul %row, %f : (tensor<3xf64>, tensor<f64>) -> tensor<3xf64>
    %z = graph.sub %y, %s : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %next = arith.addi %i, %c1 : index
    %x1 = tensor.insert_slice %y into %x[%next, 0] [1, 3] [1, 1] : tensor<3xf64> into tensor<9x3xf64>
    scf.yield %x1, %z : tensor<9x3xf64>, tensor<3xf64>
  }
  func.return %r#0, %r#1 : tensor<9x3xf64>, tensor<3xf64>
}
