// What ops on rows of a CSR matrix refuse, and in which words.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics

func.func @indices(%d: tensor<1x9xf64>, %i: tensor<1x9xi64>, %s: tensor<5xi64>, %e: tensor<5xi64>, %w: tensor<30x4xf64>) {
  // expected-error@+1 {{'graph.csr_matmul' expects elements of i32, got tensor<1x9xi64>}}
  %y = graph.csr_matmul %d, %i, %s, %e, %w {steps = []} : (tensor<1x9xf64>, tensor<1x9xi64>, tensor<5xi64>, tensor<5xi64>, tensor<30x4xf64>) -> tensor<5x4xf64>
  func.return
}

// -----

func.func @stored(%d: tensor<1x9xf64>, %i: tensor<1x8xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>, %w: tensor<30x4xf64>) {
  // expected-error@+1 {{'graph.csr_matmul' expects indices of type tensor<1x9xi32>, got tensor<1x8xi32>}}
  %y = graph.csr_matmul %d, %i, %s, %e, %w {steps = []} : (tensor<1x9xf64>, tensor<1x8xi32>, tensor<5xi64>, tensor<5xi64>, tensor<30x4xf64>) -> tensor<5x4xf64>
  func.return
}

// -----

func.func @rows(%d: tensor<1x9xf64>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<6xi64>, %w: tensor<30x4xf64>) {
  // expected-error@+1 {{'graph.csr_matmul' expects starts and ends of one type, i64, got tensor<5xi64> and tensor<6xi64>}}
  %y = graph.csr_matmul %d, %i, %s, %e, %w {steps = []} : (tensor<1x9xf64>, tensor<1x9xi32>, tensor<5xi64>, tensor<6xi64>, tensor<30x4xf64>) -> tensor<5x4xf64>
  func.return
}

// -----

func.func @element(%d: tensor<1x9xf32>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>, %w: tensor<30x4xf64>) {
  // expected-error@+1 {{'graph.csr_matmul' expects a matrix of f32, as the steps give, got tensor<30x4xf64>}}
  %y = graph.csr_matmul %d, %i, %s, %e, %w {steps = []} : (tensor<1x9xf32>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>, tensor<30x4xf64>) -> tensor<5x4xf64>
  func.return
}

// -----

func.func @beside(%d: tensor<1x9xf64>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>, %w: tensor<30x4xf64>, %a: tensor<29xf64>) {
  // expected-error@+1 {{'graph.csr_matmul' expects numbers, one value a column or one a row beside the elements, got tensor<29xf64>}}
  %y = graph.csr_matmul %d, %i, %s, %e, %w, %a {steps = ["mul x a0"]} : (tensor<1x9xf64>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>, tensor<30x4xf64>, tensor<29xf64>) -> tensor<5x4xf64>
  func.return
}

// -----

func.func @step(%d: tensor<1x9xf64>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>) {
  // expected-error@+1 {{'graph.csr_reduce' expects steps that are a chain of scalars, got a step 'tanh'}}
  %y = graph.csr_reduce %d, %i, %s, %e {kind = "sum", initial = 0.0 : f64, steps = ["tanh x"]} : (tensor<1x9xf64>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x1xf64>
  func.return
}

// -----

func.func @value(%d: tensor<1x9xf64>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>) {
  // expected-error@+1 {{got value 's0' of step 0: x, an operand or the result of a step before it}}
  %y = graph.csr_reduce %d, %i, %s, %e {kind = "sum", initial = 0.0 : f64, steps = ["mul x s0"]} : (tensor<1x9xf64>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x1xf64>
  func.return
}

// -----

func.func @types(%d: tensor<1x9xf64>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>) {
  // expected-error@+1 {{got 'mul s0 x' on f32, f64}}
  %y = graph.csr_reduce %d, %i, %s, %e {kind = "sum", initial = 0.0 : f64, steps = ["f32 x", "mul s0 x"]} : (tensor<1x9xf64>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x1xf64>
  func.return
}

// -----

func.func @kind(%d: tensor<1x9xf64>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>) {
  // expected-error@+1 {{'graph.csr_reduce' expects a kind among sum, max, min, got 'mean'}}
  %y = graph.csr_reduce %d, %i, %s, %e {kind = "mean", initial = 0.0 : f64, steps = []} : (tensor<1x9xf64>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x1xf64>
  func.return
}

// -----

func.func @columns(%d: tensor<1x9xf64>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>) {
  // expected-error@+1 {{'graph.csr_dense' expects 1 column or more, got 0}}
  %y = graph.csr_dense %d, %i, %s, %e {columns = 0 : i64, initial = 0.0 : f64} : (tensor<1x9xf64>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x0xf64>
  func.return
}
