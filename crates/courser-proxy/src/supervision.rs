//! What the service cannot do without, and who learns that it is gone.
//!
//! There is one rule: a panic costs the connection whose task it was. Anywhere else, in a worker, in a task that all
//! connections of a worker need, or in a thread of the background, it costs the process, in order: the others are drained,
//! and whoever started the process starts it again. Nothing is started anew here: the state in which a panic leaves things is not known, and a service with half its parts looks healthy and is not.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::{fmt, io, panic, thread};

use courser_telemetry::event::{Level, log};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Starts threads whose panic is the end of the process.
#[derive(Clone)]
pub struct Threads {
    supervisor: Arc<dyn Fn(Panicked) + Send + Sync>,
}

/// A thread has ended before its time.
#[derive(Debug)]
pub struct Panicked {
    /// The thread's name.
    pub thread: String,
    /// The message of the panic.
    pub message: String,
}

impl Threads {
    /// Threads whose panics `supervisor` is called with, on the thread that ends.
    pub fn new(supervisor: impl Fn(Panicked) + Send + Sync + 'static) -> Self {
        Self { supervisor: Arc::new(supervisor) }
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// When the system has none left.
    pub fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<thread::JoinHandle<()>> {
        let (supervisor, name) = (Arc::clone(&self.supervisor), name.to_owned());
        thread::Builder::new().name(name.clone()).spawn(move || {
            if let Err(message) = catch_panic(work) {
                supervisor(Panicked { thread: name, message });
            }
        })
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Threads")
    }
}

/// Does `work` to its end, or to its panic, which is given as an error. What `work` has touched must not be used after it.
///
/// # Errors
/// The message of the panic.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| text(&*payload).to_owned())
}

/// From now on panics are event lines. The standard library writes them to standard error itself, and a worker would wait
/// for who reads there.
pub fn log_panics() {
    panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let thread = thread::current();
        let (name, place) = (thread.name().unwrap_or("without a name"), panic.location());
        let place = place.map(|place| format!(" at {place}")).unwrap_or_default();
        // As RUST_BACKTRACE says.
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| format!("\n{trace}"));
        let (why, trace) = (text(panic.payload()), trace.unwrap_or_default());
        log(Level::Error, format_args!("thread {name} has panicked{place}: {why}{trace}"));
    }));
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let formatted = payload.downcast_ref::<String>().map(String::as_str);
    formatted.or_else(|| payload.downcast_ref().copied()).unwrap_or("it does not say why")
}

/// The tasks of a worker that its connections cannot do without.
#[derive(Clone, Default)]
pub(crate) struct Tasks(Rc<FailedTask>);

#[derive(Default)]
struct FailedTask {
    name: Cell<Option<&'static str>>,
    notify: Notify,
}

impl Tasks {
    /// Starts a task on this thread's runtime. Its panic is the worker's.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + 'static,
    ) -> JoinHandle<()> {
        let watched = PanicGuard { name, fallen: Rc::clone(&self.0) };
        tokio::task::spawn_local(async move {
            let _watched = watched;
            task.await;
        })
    }

    /// Waits until one of them panics.
    pub(crate) async fn failure(&self) -> io::Error {
        loop {
            if let Some(name) = self.0.name.get() {
                return io::Error::other(format!("its {name} has panicked"));
            }
            self.0.notify.notified().await;
        }
    }
}

/// Dropped while its task unwinds, it records the failure.
struct PanicGuard {
    name: &'static str,
    fallen: Rc<FailedTask>,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.fallen.name.set(Some(self.name));
            self.fallen.notify.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::runtime::{Builder, LocalOptions};

    use super::*;

    #[test]
    fn a_thread_that_panics_is_reported_and_one_that_ends_is_not() {
        let (reports, reported) = channel();
        let threads = Threads::new(move |panicked| reports.send(panicked).unwrap());
        threads.spawn("good", || {}).unwrap().join().unwrap();
        threads.spawn("bad", || panic!("{} lost", 2)).unwrap().join().unwrap();
        let Panicked { thread, message } = reported.try_recv().unwrap();
        assert_eq!((thread.as_str(), message.as_str()), ("bad", "2 lost"));
        assert!(reported.try_recv().is_err());
    }

    #[test]
    fn a_task_that_panics_is_the_failure_and_one_that_ends_or_is_aborted_is_not() {
        let runtime = Builder::new_current_thread().build_local(LocalOptions::default()).unwrap();
        let tasks = Tasks::default();
        runtime.block_on(async {
            tasks.spawn("short task", async {}).await.unwrap();
            let long = tasks.spawn("long task", std::future::pending());
            long.abort();
            assert!(long.await.unwrap_err().is_cancelled());
            assert!(tasks.0.name.get().is_none());
            tasks.spawn("bad task", async { panic!("on purpose") });
            assert_eq!(tasks.failure().await.to_string(), "its bad task has panicked");
        });
    }
}
