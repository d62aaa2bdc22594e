//! A worker with a store, and what it tells.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use courser_store::{
    Access, Connector, Store, StoreCount, StoreCounters, StoreEndpoint, StoreFailure, StoreUrl,
};
use courser_testkit::PATIENCE;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::AbortHandle;

/// Longer than by default: a loaded machine must not look like a slow store.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);

/// For stores that do not answer: so soon it is noticed. Nothing fails when that takes longer.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// What five waits of [`SHORT`], after which a store is left alone, may take together on a machine that has other things
/// to do. They should take half a second; five that nothing but a write's limit of a second ends would take longer.
pub(crate) const FIVE_WAITS: Duration = Duration::from_secs(4);

/// For stores that answer at once, whatever they answer: who asks then never waits so long, on no machine.
pub(crate) const PATIENT: Duration = Duration::from_secs(10);

pub(crate) const NAME: [u8; 32] = [7; 32];
pub(crate) const KEY: &str = "courser:0707070707070707070707070707070707070707070707070707070707070707";
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Runs `test` as a worker would run: alone on its thread.
pub(crate) fn worker<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(test)
}

/// A store, its counters, and the lines that it had to say.
pub(crate) struct Watched {
    pub(crate) store: Store,
    target: Arc<StoreEndpoint>,
    pub(crate) counters: Arc<StoreCounters>,
    lines: Arc<Mutex<Vec<String>>>,
}

fn spawn(connector: Connector) -> AbortHandle {
    tokio::task::spawn_local(connector).abort_handle()
}

impl Watched {
    pub(crate) fn new(url: &str) -> Self {
        Self::with(url, Access::default(), TIMEOUT)
    }

    pub(crate) fn with(url: &str, access: Access, timeout: Duration) -> Self {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&lines);
        let tell = move |line: &str| heard.lock().unwrap().push(line.to_owned());
        let counters = Arc::new(StoreCounters::new(tell));
        let target = StoreEndpoint::new(StoreUrl::parse(url).unwrap(), access).unwrap();
        let store = Store::new(Arc::clone(&target), timeout, Arc::clone(&counters), spawn);
        Self { store, target, counters, lines }
    }

    /// The store of another worker of the same process.
    pub(crate) fn another(&self) -> Store {
        Store::new(Arc::clone(&self.target), TIMEOUT, Arc::clone(&self.counters), spawn)
    }

    /// As [`Watched::new`], once it is connected.
    pub(crate) async fn connected(url: &str) -> Self {
        let store = Self::new(url);
        store.until_available().await;
        store
    }

    pub(crate) fn count(&self, what: StoreCount) -> u64 {
        self.counters.get(what)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) async fn until_available(&self) {
        self.until("the store is available", || self.store.is_available()).await;
    }

    pub(crate) async fn until_line(&self, part: &str) {
        self.until(part, || self.lines().iter().any(|line| line.contains(part))).await;
    }

    pub(crate) async fn until_count(&self, what: StoreCount, at_least: u64) {
        self.until(&format!("{what:?}"), || self.count(what) >= at_least).await;
    }

    /// Waits for a condition, at most for [`PATIENCE`].
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            let late = Instant::now() >= deadline;
            assert!(!late, "waiting for: {what}\n{:?}\n{:#?}", self.counters, self.lines());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Puts `value` under `name` and waits until the store has said that it has it.
    pub(crate) async fn put(&self, name: &[u8; 32], value: &[u8]) {
        let before = self.count(StoreCount::Stored);
        self.store.put(name, value, MINUTE);
        self.until_count(StoreCount::Stored, before + 1).await;
    }

    /// Deletes what is under `name` and waits until the store has said that it did.
    pub(crate) async fn delete(&self, name: &[u8; 32]) {
        let before = self.count(StoreCount::Deleted);
        self.store.delete(name);
        self.until_count(StoreCount::Deleted, before + 1).await;
    }

    /// The answer to a question, if that is there without any waiting.
    pub(crate) fn get_at_once(&self, name: &[u8; 32]) -> Poll<Result<Option<Vec<u8>>, StoreFailure>> {
        pin!(self.store.get(name)).poll(&mut Context::from_waker(Waker::noop()))
    }
}

/// Names that differ, and that a cluster spreads over its nodes.
pub(crate) fn names(count: u8) -> Vec<[u8; 32]> {
    (0..count).map(|number| [number; 32]).collect()
}
