//! Sockets and timers on the real kernel.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod connect;
mod datagram;
mod stream;
mod syn_filter;
mod tcp_info;
mod timer;

/// Runs `future` on a runtime like a worker's.
fn run<F: Future>(future: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().build().unwrap().block_on(future)
}
