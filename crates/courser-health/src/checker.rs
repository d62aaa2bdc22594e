//! The thread that checks, and what is known of its checks.

mod server;

use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use courser_balance::{Pool, Server};
use courser_net::confinement::Confinement;
use courser_telemetry::event::{Level, log};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use self::server::CheckedServer;
use crate::probe::{Endpoint, Probe};
use crate::verdict::Verdict;

/// A pool whose servers are checked.
pub struct CheckedPool<T> {
    /// For messages.
    pub name: String,
    /// Its servers; those of names change.
    pub pool: Arc<dyn AsRef<Pool<T>> + Send + Sync>,
    /// A server is down if one of them says so.
    pub checks: Vec<Check>,
}

/// A check of the servers of a pool.
#[derive(Debug, PartialEq)]
pub struct Check {
    /// What it does.
    pub probe: Probe,
    /// From the beginning of one to the beginning of the next, within a tenth, so that checks of many hosts spread.
    pub interval: Duration,
    /// Successes in a row that make a server up.
    pub up: u32,
    /// Failures in a row that make it down.
    pub down: u32,
}

/// The checks of a process, before they run.
pub struct Checker<T> {
    /// How a server is reached.
    pub endpoint: fn(&T) -> Endpoint<'_>,
    /// The time that servers are told.
    pub now: fn() -> Duration,
    /// What the thread is confined to.
    pub confinement: Option<Arc<Confinement>>,
}

/// A way to the thread, which ends when the last one is dropped.
pub struct CheckerHandle<T>(Arc<Shared<T>>);

impl<T> Clone for CheckerHandle<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Shared<T> {
    records: Arc<Records<T>>,
    pools: UnboundedSender<Vec<CheckedPool<T>>>,
    stop: Mutex<Option<(oneshot::Sender<()>, Receiver<()>)>>,
}

/// The last check of a kind of one server.
#[derive(Clone, Debug)]
pub struct LastCheck {
    /// As in the configuration: `tcp`, `http`, `agent`.
    pub kind: &'static str,
    /// Whether it has passed.
    pub passed: bool,
    /// What was seen.
    pub seen: String,
    /// When it ended, on the clock of the servers.
    pub at: Duration,
    /// How long it took.
    pub taken: Duration,
}

/// The servers that are checked, with their last checks, and counts of all checks.
#[derive(Debug)]
struct Records<T> {
    servers: Mutex<Vec<Arc<Record<T>>>>,
    counts: Mutex<CheckCounts>,
}

/// What is known of the checks of one server.
#[derive(Debug)]
struct Record<T> {
    server: Arc<Server<T>>,
    /// By the place of the check among its pool's.
    last: Mutex<Vec<Option<LastCheck>>>,
}

/// Checks since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckCounts {
    /// Those that have passed.
    pub passed: u64,
    /// Those that have failed.
    pub failed: u64,
}

impl<T: Send + Sync + 'static> Checker<T> {
    /// Runs on a thread that `spawn` starts under the given name.
    ///
    /// # Errors
    /// When there is no memory, descriptor or thread left for it.
    pub fn start(
        self,
        spawn: impl FnOnce(&str, Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<CheckerHandle<T>> {
        let records = Arc::new(Records { servers: Mutex::default(), counts: Mutex::default() });
        let ((stop, stopped), (running, ended), (ready, started)) =
            (oneshot::channel(), channel::<()>(), sync_channel(1));
        let (pools, commands) = unbounded_channel();
        let seen = Arc::clone(&records);
        let run = move || {
            let _running = running;
            match runtime() {
                Ok(runtime) => {
                    drop(ready.send(Ok(())));
                    self.run(&runtime, &seen, commands, stopped);
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        spawn("checks", Box::new(run))?;
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the thread has ended")))?;
        Ok(CheckerHandle(Arc::new(Shared { records, pools, stop: Mutex::new(Some((stop, ended))) })))
    }

    fn run(
        self,
        runtime: &LocalRuntime,
        records: &Arc<Records<T>>,
        pools: UnboundedReceiver<Vec<CheckedPool<T>>>,
        stopped: oneshot::Receiver<()>,
    ) {
        if let Some(Err(error)) = self.confinement.as_deref().map(Confinement::enter) {
            log(Level::Warning, format_args!("the checks of servers are not confined: {error}"));
        }
        runtime.block_on(async {
            tokio::task::spawn_local(self.follow(pools, Arc::clone(records)));
            // An error, where all handles are gone, is an end too.
            drop(stopped.await);
        });
    }

    /// Checks the pools that it is told. Those that are the same go on.
    async fn follow(self, mut pools: UnboundedReceiver<Vec<CheckedPool<T>>>, records: Arc<Records<T>>) {
        let mut watchers = Vec::<(Rc<Watched<T>>, Task)>::new();
        while let Some(pools) = pools.recv().await {
            let mut before = std::mem::take(&mut watchers);
            for pool in pools {
                if let Some(same) = before.iter().position(|(watched, _)| watched.pool.is_same(&pool)) {
                    watchers.push(before.swap_remove(same));
                    continue;
                }
                let watched = Rc::new(Watched { pool, endpoint: self.endpoint, now: self.now });
                watchers.push((Rc::clone(&watched), Task::spawn(watch(watched, Arc::clone(&records)))));
            }
        }
    }
}

impl<T> CheckedPool<T> {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pool, &other.pool) && self.checks == other.checks
    }
}

/// A task that ends when this is dropped.
struct Task(AbortHandle);

impl Task {
    fn spawn(task: impl Future<Output = ()> + 'static) -> Self {
        Self(tokio::task::spawn_local(task).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> CheckerHandle<T> {
    /// Checks these pools from now on, and no other; pools without checks are left out.
    pub fn replace(&self, pools: Vec<CheckedPool<T>>) {
        // A thread that has stopped checks nothing.
        let _ = self.0.pools.send(pools);
    }

    /// Ends the thread, whatever it waits for. Returns whether it has ended within `limit`.
    pub fn stop(&self, limit: Duration) -> bool {
        let Some((stop, ended)) = lock(&self.0.stop).take() else { return true };
        drop(stop);
        ended.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }

    /// The last check of each kind of a server; none where it is not checked.
    pub fn last(&self, server: &Arc<Server<T>>) -> Vec<LastCheck> {
        let servers = lock(&self.0.records.servers);
        let found = servers.iter().find(|record| Arc::ptr_eq(&record.server, server));
        found.map_or_else(Vec::new, |record| lock(&record.last).iter().flatten().cloned().collect())
    }

    /// All checks since the start.
    pub fn counts(&self) -> CheckCounts {
        *lock(&self.0.records.counts)
    }
}

impl<T> Records<T> {
    fn add(&self, server: &Arc<Server<T>>, checks: usize) -> Arc<Record<T>> {
        let record = Record { server: Arc::clone(server), last: Mutex::new(vec![None; checks]) };
        let record = Arc::new(record);
        lock(&self.servers).push(Arc::clone(&record));
        record
    }

    fn remove(&self, record: &Arc<Record<T>>) {
        lock(&self.servers).retain(|one| !Arc::ptr_eq(one, record));
    }

    fn count(&self, passed: bool) {
        let mut counts = lock(&self.counts);
        *(if passed { &mut counts.passed } else { &mut counts.failed }) += 1;
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())
}

/// A pool, and what its checks need beside it.
struct Watched<T> {
    pool: CheckedPool<T>,
    endpoint: fn(&T) -> Endpoint<'_>,
    now: fn() -> Duration,
}

/// The checks of one server, which end when this is dropped.
struct Running<T> {
    record: Arc<Record<T>>,
    records: Arc<Records<T>>,
    _tasks: Vec<Task>,
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.records.remove(&self.record);
    }
}

/// Checks the servers that the pool has, each until the pool has it no more.
async fn watch<T: 'static>(watched: Rc<Watched<T>>, records: Arc<Records<T>>) {
    let (pool, mut running) = (&watched.pool, HashMap::<*const Server<T>, Running<T>>::new());
    loop {
        let current = (*pool.pool).as_ref().servers().to_vec();
        running.retain(|_, checks| current.iter().any(|server| Arc::ptr_eq(server, &checks.record.server)));
        for server in current {
            running.entry(Arc::as_ptr(&server)).or_insert_with(|| {
                let record = records.add(&server, pool.checks.len());
                let target = Rc::new(CheckedServer::new(Rc::clone(&watched), server));
                let check = |index| {
                    let (target, record) = (Rc::clone(&target), Arc::clone(&record));
                    Task::spawn(repeat(target, index, record, Arc::clone(&records)))
                };
                let tasks = (0..pool.checks.len()).map(check).collect();
                Running { record, records: Arc::clone(&records), _tasks: tasks }
            });
        }
        sleep(NEW_SERVERS).await;
    }
}

/// One check of one server, again and again.
async fn repeat<T: 'static>(
    target: Rc<CheckedServer<T>>,
    index: usize,
    record: Arc<Record<T>>,
    records: Arc<Records<T>>,
) {
    let check = &target.watched.pool.checks[index];
    let (random, mut verdict) = (RandomState::new(), Verdict::new(check.up, check.down));
    for number in 0_u64.. {
        let begun = Instant::now();
        let seen = check.probe.run(&target.server.name, &target.endpoint()).await;
        let last = LastCheck {
            kind: check.probe.kind.name(),
            passed: seen.is_ok(),
            seen: seen.as_ref().map_or_else(Clone::clone, |(seen, _)| seen.clone()),
            at: (target.watched.now)(),
            taken: begun.elapsed(),
        };
        match seen {
            Ok((_, Some(report))) => target.obey(&report),
            // What the agent said last holds: another check says whether the server can be reached.
            Err(_) if last.kind == "agent" => target.agent_is_silent(&last),
            _ => target.judge(index, verdict.observe(last.passed), &last),
        }
        records.count(last.passed);
        lock(&record.last)[index] = Some(last);
        #[expect(clippy::cast_precision_loss, reason = "a random number")]
        let share = random.hash_one(number) as f64 / u64::MAX as f64;
        sleep_until(begun + check.interval.mul_f64(1.0 + JITTER * (2.0 * share - 1.0))).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Part of the interval by which a check may begin earlier or later: so that those of many hosts, started together, do not
/// meet at their servers for good.
const JITTER: f64 = 0.1;

/// Time until a server that a name has got is checked, and one that it has lost no more.
const NEW_SERVERS: Duration = Duration::from_secs(1);
