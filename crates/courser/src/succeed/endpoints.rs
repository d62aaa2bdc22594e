//! Where a process is spoken to beside its listening sockets: its fleet, its control socket, HTTP for operators. One process
//! answers there at a time.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::OldProcesses;
use super::message::{Process, TakenOver};
use crate::exit::Failure;

/// One of them.
pub(crate) trait Endpoint: Send + Sync {
    /// From now on this process speaks and answers.
    fn begin(&self) -> Result<(), Failure>;

    /// Adds its descriptors for another process, and what they are.
    fn share(&self, shared: &mut Shared) -> io::Result<()>;

    /// This process speaks and answers no more; another one does, with what it has kept.
    fn end(&self, kept: &TakenOver);
}

/// What another process gets: descriptors, in the order in which `process` names them.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) process: Process,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Those that are configured, in the order of the fields of [`Process`].
#[derive(Default)]
pub(crate) struct Endpoints {
    pub(crate) list: Vec<Arc<dyn Endpoint>>,
    /// The ways to processes that drain.
    pub(crate) old: Arc<OldProcesses>,
}

impl Endpoints {
    /// All begin. The first failure is returned.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        let begun: Vec<_> = self.list.iter().map(|endpoint| endpoint.begin()).collect();
        begun.into_iter().collect()
    }

    pub(super) fn share(&self) -> io::Result<Shared> {
        let mut shared = Shared::default();
        self.list.iter().try_for_each(|endpoint| endpoint.share(&mut shared))?;
        for (process, channel) in self.old.share()? {
            shared.process.old.push(process);
            shared.descriptors.push(channel);
        }
        Ok(shared)
    }

    pub(super) fn end(&self, kept: &TakenOver) {
        self.list.iter().for_each(|endpoint| endpoint.end(kept));
        self.old.leave();
    }
}
