//! The terminator.

fn main() {}
