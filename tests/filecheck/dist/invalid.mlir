// What each collective op refuses, and in which words.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics

func.func @kind(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.all_reduce' expects a kind among sum, mean, max, min, got 'median'}}
  %y = dist.all_reduce %x {kind = "median"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @mean_of_integers(%x: tensor<4xi64>) {
  // expected-error@+1 {{'dist.all_reduce' expects a mean of floats, got tensor<4xi64>}}
  %y = dist.all_reduce %x {kind = "mean"} : (tensor<4xi64>) -> tensor<4xi64>
  func.return
}

// -----

func.func @gathered(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.all_gather' expects result of type tensor<2x4xf32>, got tensor<8xf32>}}
  %y = dist.all_gather %x {size = 2 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @nobody(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.all_gather' expects one rank or more, got 0}}
  %y = dist.all_gather %x {size = 0 : i64} : (tensor<4xf32>) -> tensor<0x4xf32>
  func.return
}

// -----

func.func @open(%x: tensor<?xf32>) {
  // expected-error@+1 {{'dist.all_gather' expects static extents, which are those of every rank, got tensor<?xf32>}}
  %y = dist.all_gather %x {size = 2 : i64} : (tensor<?xf32>) -> tensor<2x?xf32>
  func.return
}

// -----

func.func @root(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.broadcast' expects a root from 0, got -1}}
  %y = dist.broadcast %x {root = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
