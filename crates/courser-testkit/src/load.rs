//! Load in a closed loop: so many connections at a time, a new one as soon as one has ended.
//!
//! The first failure of any connection ends the run: a figure over connections of which some failed means nothing.

use std::{
    fmt, io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use nix::time::ClockId;

use crate::client::{Client, Connection};

/// What each connection does after its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Nothing: it sends close_notify, ends its side, and waits until the server has ended the other.
    Handshake,
    /// One request for an object of so many bytes, every byte checked; the origin closes, then the server.
    Request(usize),
    /// So many requests one after the other, each for an object of so many bytes.
    Requests {
        /// Bytes of an object.
        size: usize,
        /// How many.
        count: usize,
    },
    /// One request with a body of so many bytes, which the origin has counted when it answers.
    Upload(usize),
}

/// How much load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// What each connection does.
    pub workload: Workload,
    /// Whether every handshake must be resumed (`true`) or full (`false`).
    pub resumed: bool,
    /// How many at a time, each with a thread.
    pub concurrency: usize,
    /// When to stop.
    pub until: Until,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After exactly so many connections.
    Connections(usize),
    /// After this time: no connection is started later.
    Elapsed(Duration),
}

/// What a load amounted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Connections completed.
    pub connections: usize,
    /// From the first connection's beginning to the last one's end.
    pub elapsed: Duration,
    /// Processor time that this process spent meanwhile: the client's and, if it is in-process, the origin's.
    pub own_cpu: Duration,
}

impl Outcome {
    /// Connections per second.
    pub fn rate(&self) -> f64 {
        let count = u32::try_from(self.connections).map_or(f64::MAX, f64::from);
        count / self.elapsed.as_secs_f64()
    }
}

/// Why a load ended early.
#[derive(Debug)]
pub enum Failure {
    /// A connection failed; the count is of those completed before.
    Connection {
        /// Connections completed before it.
        after: usize,
        /// What happened to it.
        error: io::Error,
    },
    /// A handshake that should have been resumed was full, or the other way round.
    Resumption {
        /// Whether it was resumed.
        resumed: bool,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection { after, error } => {
                write!(f, "connection failed after {after} good ones: {error}")
            }
            Self::Resumption { resumed: true } => f.write_str("a handshake was resumed that had to be full"),
            Self::Resumption { resumed: false } => f.write_str("a handshake was full that had to be resumed"),
        }
    }
}

impl std::error::Error for Failure {}

impl Load {
    /// Runs it.
    ///
    /// # Errors
    /// The first failure of a connection.
    pub fn run(&self, client: &Client) -> Result<Outcome, Failure> {
        let run = Run::new(*self);
        let (started, cpu) = (Instant::now(), own_cpu());
        thread::scope(|scope| {
            for _ in 0..self.concurrency {
                scope.spawn(|| run.work(client));
            }
        });
        let (elapsed, own_cpu) = (started.elapsed(), own_cpu().saturating_sub(cpu));
        let connections = run.completed.into_inner();
        match run.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok(Outcome { connections, elapsed, own_cpu }),
        }
    }
}

/// Establishes `count` connections, makes one request for `size` bytes on each, and leaves them open.
///
/// # Errors
/// The first failure of a connection.
pub fn hold(client: &Client, count: usize, concurrency: usize, size: usize) -> io::Result<Vec<Connection>> {
    let started = AtomicUsize::new(0);
    let one = || -> io::Result<Connection> {
        let mut connection = client.connect()?;
        connection.get(size, false)?;
        Ok(connection)
    };
    let share = || -> io::Result<Vec<Connection>> {
        let mut held = Vec::new();
        while started.fetch_add(1, Ordering::Relaxed) < count {
            held.push(one()?);
        }
        Ok(held)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..concurrency).map(|_| scope.spawn(share)).collect();
        let mut all = Vec::with_capacity(count);
        for thread in threads {
            all.extend(thread.join().map_err(|_| io::Error::other("a client thread panicked"))??);
        }
        Ok(all)
    })
}

/// Processor time of this process.
pub fn own_cpu() -> Duration {
    ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map(Into::into).unwrap_or_default()
}

/// A load under way, shared by its threads.
struct Run {
    load: Load,
    deadline: Option<Instant>,
    started: AtomicUsize,
    completed: AtomicUsize,
    failed: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

impl Run {
    fn new(load: Load) -> Self {
        let deadline = match load.until {
            Until::Connections(_) => None,
            Until::Elapsed(time) => Some(Instant::now() + time),
        };
        Self {
            load,
            deadline,
            started: AtomicUsize::new(0),
            completed: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    fn work(&self, client: &Client) {
        while self.may_begin() {
            if let Err(failure) = self.one(client) {
                self.failed.store(true, Ordering::Relaxed);
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                return;
            }
            self.completed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn may_begin(&self) -> bool {
        let started = self.started.fetch_add(1, Ordering::Relaxed);
        let wanted = match (self.load.until, self.deadline) {
            (Until::Connections(count), _) => started < count,
            (_, deadline) => deadline.is_none_or(|deadline| Instant::now() < deadline),
        };
        wanted && !self.failed.load(Ordering::Relaxed)
    }

    fn one(&self, client: &Client) -> Result<(), Failure> {
        let failed = |error| Failure::Connection { after: self.completed.load(Ordering::Relaxed), error };
        let mut connection = client.connect().map_err(failed)?;
        let resumed = connection.is_resumed();
        if resumed != self.load.resumed {
            return Err(Failure::Resumption { resumed });
        }
        match self.load.workload {
            Workload::Handshake => connection.close(),
            workload => connection.exchange(workload),
        }
        .map_err(failed)
    }
}

impl Connection {
    /// What follows the handshake, with every byte checked; a [`Workload::Handshake`] has nothing.
    ///
    /// # Errors
    /// When the connection fails, or the answer is another.
    pub fn exchange(&mut self, workload: Workload) -> io::Result<()> {
        match workload {
            Workload::Handshake => Ok(()),
            Workload::Request(size) => self.get(size, true),
            Workload::Requests { size, count } => {
                (1..=count).try_for_each(|number| self.get(size, number == count))
            }
            Workload::Upload(size) => self.upload(size),
        }
    }
}
