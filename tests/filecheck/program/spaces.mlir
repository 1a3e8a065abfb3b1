// The host touches no array of the device, and the device none of the host.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: memref<8xf64>) {
  %d = memref.alloc() : memref<8xf64, 1 : i64>
  "memref.copy"(%x, %d) : (memref<8xf64>, memref<8xf64, 1 : i64>) -> ()
  // expected-error@+1 {{'bufferization.to_tensor' touches an array of the device, and is the host's}}
  %t = bufferization.to_tensor %d : memref<8xf64, 1 : i64> to tensor<8xf64>
  func.return
}

// -----

func.func @main() -> memref<8xf64, 1 : i64> {
  %d = memref.alloc() : memref<8xf64, 1 : i64>
  // expected-error@+1 {{'func.return' touches an array of the device}}
  func.return %d : memref<8xf64, 1 : i64>
}

// -----

func.func @region(%x: memref<8xf64, 1 : i64>) {
  func.return
}
func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{expected operand type memref<8xf64, 1 : i64>, but provided memref<8xf64>}}
  func.call @region(%x) : (memref<8xf64>) -> ()
  func.return
}

// -----

func.func @region(%x: memref<8xf64>) {
  func.return
}
func.func @main() {
  %d = memref.alloc() : memref<8xf64, 1 : i64>
  // expected-error@+1 {{expected operand type memref<8xf64>, but provided memref<8xf64, 1 : i64>}}
  func.call @region(%d) : (memref<8xf64, 1 : i64>) -> ()
  func.return
}

// -----

// expected-error@+1 {{'func.func' has arrays of the device and of the host: it can run on neither}}
func.func @region(%x: memref<8xf64, 1 : i64>, %y: memref<8xf64>) {
  func.return
}

// -----

func.func @region(%x: memref<8xf64, 1 : i64>) {
  // expected-error@+1 {{'program.call' calls the host from the device}}
  program.call @log(%x) : memref<8xf64, 1 : i64>
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{'memref.alloc' makes what is in memory space 3 : i64: there are the host's}}
  %d = memref.alloc() : memref<8xf64, 3 : i64>
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  %d = memref.alloc() : memref<8xf64, 1 : i64>
  // expected-error@+1 {{'memref.copy' reads an array that was never written}}
  "memref.copy"(%d, %x) : (memref<8xf64, 1 : i64>, memref<8xf64>) -> ()
  func.return
}

// -----

func.func @main(%x: memref<8xf64>, %y: memref<8xf64>) {
  %r = memref.reinterpret_cast %x to offset: [0], sizes: [8], strides: [0] : memref<8xf64> to memref<8xf64, strided<[0]>>
  // expected-error@+1 {{'memref.copy' copies to a view that has an element of its buffer twice}}
  "memref.copy"(%y, %r) : (memref<8xf64>, memref<8xf64, strided<[0]>>) -> ()
  func.return
}
