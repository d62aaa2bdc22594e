//! The control law in simulation: a worker, a kernel with its queue and filter, and clients that come, wait, come again and
//! leave. A failing run prints its seed.

mod loads;
mod simulation;
