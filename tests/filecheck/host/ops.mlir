// RUN: irkit-opt %s --verify-roundtrip | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s

// CHECK:      host.program @dag {
// CHECK-NEXT:   %x = host.buffer {space = "device", nbytes = 64 : i64}
// CHECK-NEXT:   %h = host.buffer {space = "host", nbytes = 64 : i64}
// CHECK-NEXT:   %0 = host.region %x writes 64 bytes at 0
// CHECK-NEXT:   %1 = host.region %h reads 64 bytes at 0 {label = "h"}
// CHECK-NEXT:   %t0 = host.task "copy" to_device on 1 uses(%0, %1) {line = "user.py:3", cost_ns = 2.000000e+00 : f64}
// CHECK-NEXT:   %2 = host.region %x updates 4 bytes at 4 of [2, 3] by [32, 8]
// CHECK-NEXT:   %t1 = host.task "scale" kernel on 2 wait(%t0) uses(%2)
// CHECK-NEXT:   %t2 = host.task "nothing" function on 0
// CHECK-NEXT: }
host.program @dag {
  %x = host.buffer {space = "device", nbytes = 64 : i64}
  %h = host.buffer {space = "host", nbytes = 64 : i64}
  %0 = host.region %x writes 64 bytes at 0
  %1 = host.region %h reads 64 bytes at 0 {label = "h"}
  %t0 = host.task "copy" to_device on 1 uses(%0, %1) {line = "user.py:3", cost_ns = 2.0 : f64}
  %2 = host.region %x updates 4 bytes at 4 of [2, 3] by [32, 8]
  %t1 = host.task "scale" kernel on 2 wait(%t0) uses(%2)
  %t2 = host.task "nothing" function on 0
}

// CHECK: host.program @proved attributes {verified = "sha256:0"} {
host.program @proved attributes {verified = "sha256:0"} {
}
