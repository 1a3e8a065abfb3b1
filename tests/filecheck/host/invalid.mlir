// RUN: irkit-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{'host.buffer' expects a space of host, device, got 'disk'}}
host.program @p {
  %x = host.buffer {space = "disk", nbytes = 64 : i64}
}

// -----

host.program @p {
  %x = host.buffer {space = "host", nbytes = 64 : i64}
  // expected-error@+1 {{'host.region' expects one of reads, writes, updates, got 'eats'}}
  %0 = host.region %x eats 64 bytes at 0
}

// -----

host.program @p {
  %x = host.buffer {space = "host", nbytes = 64 : i64}
  // expected-error@+1 {{'host.region' expects as many strides as sizes, got 1 for 2}}
  %0 = host.region %x reads 8 bytes at 0 of [2, 2] by [8]
}

// -----

host.program @p {
  %x = host.buffer {space = "host", nbytes = 64 : i64}
  // expected-error@+1 {{'host.region' expects sizes that are not negative, strides above 0}}
  %0 = host.region %x reads 8 bytes at 0 of [2] by [0]
}

// -----

host.program @p {
  // expected-error@+1 {{'host.task' expects a kind of kernel, program, function, collective, to_device, to_host, got 'thing'}}
  %0 = host.task "a" thing
}

// -----

host.program @p {
  // expected-error@+1 {{'host.task' expects no kernel on queue 0}}
  %0 = host.task "a" kernel on 0
}

// -----

host.program @p {
  %0 = host.task "a" kernel
  // expected-error@+1 {{'host.task' waits for events only where it has a queue}}
  %1 = host.task "b" kernel wait(%0)
}

// -----

// expected-error@+1 {{'host.program' holds buffers, regions and tasks, not 'arith.constant'}}
host.program @p {
  %0 = arith.constant 1 : i64
}
