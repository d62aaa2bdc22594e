//! The thread on which names of stores are looked up, and on which the library makes its connections and runs them.
//!
//! Looking a name up waits for the system's resolver and reads its files; and the library reads the system's certificates
//! for every connection with TLS. A worker may do neither: it must not wait, and it may be forbidden to open files and to
//! start threads.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The thread. Dropped, it ends, and with it the connections that it keeps going.
pub(crate) struct Dialer {
    runtime: Handle,
    _running: oneshot::Sender<()>,
}

impl Dialer {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        thread::Builder::new().name("store".to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
            // A look-up that hangs must not hold up the end of the process.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, _running: running })
    }

    /// Has something done on the thread. It is given up when the future is dropped.
    ///
    /// # Errors
    /// When it panicked, or the thread has ended.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        let task = self.runtime.spawn(work);
        let _given_up = Abort(task.abort_handle());
        task.await.map_err(io::Error::other)
    }
}

/// Aborts a task whose result is no longer needed; without effect on one that is done.
struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn work_is_done_on_the_thread_and_given_up_with_its_future() {
        let dialer = Dialer::start().expect("a thread can be started");
        let name = dialer.run(async { thread::current().name().map(str::to_owned) }).await;
        assert_eq!(name.expect("it was done").as_deref(), Some("store"));
        let held = Arc::new(());
        let inside = Arc::clone(&held);
        let mut never = Box::pin(dialer.run(async move {
            let _inside = inside;
            std::future::pending::<()>().await;
        }));
        tokio::select! { biased; _ = &mut never => panic!("it never ends"), () = tokio::task::yield_now() => {} }
        drop(never);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
