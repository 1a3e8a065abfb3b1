// Two steps of a recurrent cell from the graph to a proved schedule and to Numba modules.
// RUN: irkit-opt %s --to=task --device=test4 --check-semantics | filecheck %s --check-prefix=TASK
// RUN: irkit-opt %s --to=schedule --device=test4 --check-semantics | filecheck %s --check-prefix=SCHEDULE
// RUN: irkit-opt %s -t 'numba{target=cpu}' --device=cpu4 | filecheck %s --check-prefix=CPU
// RUN: irkit-opt %s -t 'numba{target=cuda}' | filecheck %s --check-prefix=CUDA
// RUN: irkit-run %s --level=schedule --device=test4 --seed=3 | filecheck %s --check-prefix=VALUE

// Both steps are one rOperator: the cell's two products, with all that is elementwise behind them.
// TASK:      task.roperator @recurrent_cell_0({{.*}} alternatives = [#task.alternative<{rkernel = "recurrent_cell.terms2"
// TASK:        arith.mulf
// TASK:        math.tanh
// TASK-NOT:  task.roperator @recurrent_cell_1
// TASK:      func.func @main
// TASK:        task.launch @recurrent_cell_0(
// TASK:        task.launch @recurrent_cell_0(

// SCHEDULE:      task.program @main_schedule of @main attributes {device = @test4, {{.*}}verified = "
// SCHEDULE:      [[t0:%.*]] = task.append @recurrent_cell_0 to [{{.*}}] wave {{[0-9]+}} {{.*}}reads(
// SCHEDULE:      task.append @recurrent_cell_0 to [{{.*}}] wave {{[0-9]+}} wait({{.*}}[[t0]]) reads(
// SCHEDULE-NOT:  task.append @rec

// CPU:      """irkit program for cpu4: 3 rOperators, {{.*}} appends on 4 vEUs."""
// CPU:      # ---- rOperator @recurrent_cell_0: rKernel recurrent_cell.terms2
// CPU:      def recurrent_cell_0(task, tasks, rows, scratch, operands):
// CPU:      KERNELS = (map_0, map_1, recurrent_cell_0, )
// CPU:      def run(records, begin, end, bases, counters, epoch, rows, rows_padded, address):
// CPU:      PROGRAM = Program(
// CPU-NOT:  import xdsl

// CUDA:     """irkit program for h200: 3 rOperators, {{.*}} appends on 132 vEUs."""
// CUDA:     from numba import cuda
// CUDA:     # ---- rOperator @recurrent_cell_0: rKernel recurrent_cell
// CUDA:     def persistent(
// CUDA:     PROGRAM = Program(
// CUDA-NOT: import xdsl

// VALUE:    output0: float32[1, 4]
func.func @main(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %c: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %b : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  %h2, %c2 = graph.lstm_cell %x, %h1, %c1, %w, %r, %b : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  func.return %h2, %c2 : tensor<1x4xf32>, tensor<1x4xf32>
}
