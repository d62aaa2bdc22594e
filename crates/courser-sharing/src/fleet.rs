//! The thread that talks to the other hosts of the fleet, and the way to it.
//!
//! The protocol is the [`Member`](courser_fleet::Member)'s; this moves datagrams, reads the clock and
//! hands answers to connections that wait. A worker never waits for this thread: what it asks for is queued, or dropped and
//! counted.

mod drive;
mod handle;
mod status;
mod waiting;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use courser_fleet::{Member, MemberSettings};
use courser_net::{DatagramSocket, Datagrams};
use courser_session::{Cache, FleetKeys};
use courser_telemetry::event::{Level, log};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use self::drive::{Clock, Driver, DriverStatus};
use self::handle::Inbox;
pub use handle::{CheckAnswerer, FleetHandle, Pulled};
pub use status::{FleetStatus, UnsentCounts};

/// A host's part in a fleet, before it runs.
pub struct Fleet {
    /// Where it receives.
    pub socket: DatagramSocket,
    /// The other hosts; not asked for where the socket is in a multicast group. One that is this host's own address is
    /// passed over, so that all hosts may have the same list.
    pub peers: Vec<SocketAddr>,
    /// How it presents itself. The longest payload is found out here.
    pub settings: MemberSettings,
    /// The fleet's secrets.
    pub keys: Arc<FleetKeys>,
    /// This host's sessions: what comes is put there.
    pub cache: Arc<Cache>,
    /// Where this process takes a fleet's socket over: nothing is sent or received before the sender is dropped, when the
    /// process before it has stopped.
    pub begins: Option<Receiver<Infallible>>,
}

impl Fleet {
    /// Runs the fleet on a thread that `spawn` starts under the given name. It ends when the last handle is dropped.
    ///
    /// # Errors
    /// When there is no memory, descriptor or thread left for it.
    pub fn start(
        self,
        spawn: impl FnOnce(&str, Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<FleetHandle> {
        let (handle, inbox) = FleetHandle::new();
        let (ready, started) = sync_channel(1);
        let dropped = handle.counter();
        let waits = self.begins.is_some();
        let run = move || {
            if let Some(begins) = &self.begins {
                // The end of the channel.
                let _ = begins.recv();
            }
            match self.prepare(inbox, dropped) {
                Ok((runtime, driver)) => {
                    drop(ready.send(Ok(())));
                    runtime.block_on(driver.run());
                }
                Err(error) if waits => log(Level::Error, format_args!("cannot join the fleet: {error}")),
                Err(error) => drop(ready.send(Err(error))),
            };
        };
        spawn("fleet", Box::new(run))?;
        if waits {
            return Ok(handle);
        }
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the fleet's thread has ended")))?;
        Ok(handle)
    }

    /// On the thread itself: neither of the two can move to another.
    fn prepare(self, inbox: Inbox, dropped: Arc<AtomicU64>) -> io::Result<(LocalRuntime, Driver)> {
        let Self { socket, peers, mut settings, keys, cache, .. } = self;
        let status = DriverStatus::new(&socket, peers, dropped)?;
        settings.max_payload = status.max_payload;
        let runtime =
            Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
        let datagrams = runtime.block_on(async { Datagrams::new(socket) })?;
        let clock = Clock::start();
        let member = Member::new(settings, keys, cache, clock.now());
        Ok((runtime, Driver::new(datagrams, member, inbox, clock, status)))
    }
}
