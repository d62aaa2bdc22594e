//! The result file of `courser-bench`: versioned types, reading, writing, merging. No clock, no socket, no network.
