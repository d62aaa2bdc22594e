//! The way to an agent, for other threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::names::NameSet;
use crate::settings::Settings;
use crate::status::{DryRun, SetStatus, TxtRecord};

pub(crate) type Answer<T> = std::sync::mpsc::Sender<T>;

/// What an agent is asked for.
pub(crate) enum Request {
    Replace(Box<Settings>, Vec<NameSet>),
    OrderNow(Answer<usize>),
    DryRun(Option<String>, Answer<Vec<DryRun>>),
    Record(String, Answer<Result<TxtRecord, RecordError>>),
}

/// Why there is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The name is none that is ordered here.
    Name(String),
    /// The CA does not answer, or not so that there could be one.
    Ca(String),
}

/// The way to an agent.
#[derive(Clone)]
pub struct Handle {
    requests: UnboundedSender<Request>,
    stop: watch::Sender<bool>,
    shared: Arc<Mutex<Vec<SetStatus>>>,
}

impl Handle {
    /// From now on these are ordered, in this way.
    pub fn replace(&self, settings: Settings, sets: Vec<NameSet>) {
        self.send(Request::Replace(Box::new(settings), sets));
    }

    /// The certificates that are ordered here.
    pub fn status(&self) -> Vec<SetStatus> {
        lock(&self.shared).clone()
    }

    /// Has what waits after a failure tried again at once. Waits for orders that are under way. Returns how many there are;
    /// `None` when the agent has ended.
    pub fn order_now(&self) -> Option<usize> {
        self.ask(Request::OrderNow)
    }

    /// Orders all certificates once more, or at another directory, and keeps nothing of them. Waits for it. `None` when the
    /// agent has ended.
    pub fn dry_run(&self, directory: Option<String>) -> Option<Vec<DryRun>> {
        self.ask(|answer| Request::DryRun(directory, answer))
    }

    /// The TXT record that proves a name for good. `None` when the agent has ended.
    ///
    /// # Errors
    /// Inside: why there is none.
    pub fn record(&self, name: &str) -> Option<Result<TxtRecord, RecordError>> {
        self.ask(|answer| Request::Record(name.to_owned(), answer))
    }

    /// Ends the agent, in the middle of an order too: the next one goes on with it.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Option<T> {
        let (answer, answered) = std::sync::mpsc::channel();
        self.send(request(answer));
        answered.recv().ok()
    }

    fn send(&self, request: Request) {
        // Without an agent nobody waits: the answer's end is dropped with the request.
        let _ = self.requests.send(request);
    }
}

/// The agent's end.
pub(crate) struct Requests {
    pub(crate) received: UnboundedReceiver<Request>,
    pub(crate) stop: watch::Receiver<bool>,
    shared: Arc<Mutex<Vec<SetStatus>>>,
}

impl Requests {
    /// Both ends.
    pub(crate) fn new() -> (Self, Handle) {
        let ((requests, received), (stop, stopped)) = (unbounded_channel(), watch::channel(false));
        let shared = Arc::<Mutex<Vec<SetStatus>>>::default();
        (Self { received, stop: stopped, shared: Arc::clone(&shared) }, Handle { requests, stop, shared })
    }

    /// From now on this is the status.
    pub(crate) fn report(&self, rows: Vec<SetStatus>) {
        *lock(&self.shared) = rows;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
