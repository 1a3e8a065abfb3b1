// RUN: not irkit-opt %s -p "choose-devices{device=gpu}" 2>&1 | filecheck %s --check-prefix=DEVICE
// RUN: not irkit-opt %s -p "choose-devices{target=cpu2}" 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not irkit-opt %s -p "choose-devices{target=h2000}" 2>&1 | filecheck %s --check-prefix=UNKNOWN

// DEVICE: argument 'device' of pass 'choose-devices': expected one of auto, cpu, cuda, got 'gpu'
// TARGET: pass 'choose-devices': 'cpu2' as 'target': expected a CPU as host and a GPU as target
// UNKNOWN: pass 'choose-devices': unknown device 'h2000'; did you mean 'h200'?
func.func @main(%x: memref<8xf64>) {
  func.return
}
