//! `courser-bench`, the instrument: command line, what to run, what to keep, exit codes.

/// As in `courser`: fewer instructions per connection than with glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {}
