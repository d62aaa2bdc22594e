//! The control socket: at the path that is configured, or at its default one, without which the program serves as well.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use courser_config::{Located, Problem};
use courser_net::account::Account;
use courser_proxy::Threads;
use courser_telemetry::event::{Level, log};

use super::{STOP_TIME, Service};
use crate::control::{self, Control};
use crate::exit::Failure;
use crate::status_source::StatusSource;
use crate::succeed::{Endpoint, Shared, TakenOver};

pub(crate) struct ControlService {
    /// Where the configuration says; it has to be opened there.
    named: Option<Located<PathBuf>>,
    path: PathBuf,
    /// The user that the program switches to.
    successor: Option<Account>,
    source: Arc<StatusSource>,
    /// Of the process before this one, which answers until [`Self::begin`].
    inherited: Mutex<Option<OwnedFd>>,
    control: OnceLock<Control>,
    threads: OnceLock<Threads>,
}

impl ControlService {
    pub(crate) fn new(
        named: Option<Located<PathBuf>>,
        successor: Option<Account>,
        source: Arc<StatusSource>,
    ) -> Self {
        let path = named.as_ref().map_or_else(control::default_path, |named| named.value.clone());
        Self {
            named,
            path,
            successor,
            source,
            inherited: Mutex::default(),
            control: OnceLock::new(),
            threads: OnceLock::new(),
        }
    }

    /// The socket's path, once it is open.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.control.get().map(|_| self.path.as_path())
    }

    /// The default folder belongs to this program alone: who runs it may remove the socket at the end.
    fn make_folder(&self) -> io::Result<()> {
        let Some(folder) = self.path.parent() else { return Ok(()) };
        match DirBuilder::new().mode(0o755).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                self.successor.as_ref().map_or(Ok(()), |user| chown(folder, Some(user.uid), Some(user.gid)))
            }
        }
    }

    /// Where it is to be.
    pub(crate) fn intended_path(&self) -> &Path {
        &self.path
    }

    /// The socket of the process before this one.
    pub(crate) fn inherit(&self, socket: Option<OwnedFd>) {
        *self.inherited.lock().unwrap_or_else(PoisonError::into_inner) = socket;
    }

    fn open(&self) -> io::Result<Control> {
        if let Some(socket) = self.inherited.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Control::adopt(socket, &self.path);
        }
        if self.named.is_none() {
            self.make_folder()?;
        }
        Control::open(&self.path)
    }
}

impl Service for ControlService {
    fn name(&self) -> &'static str {
        "control socket"
    }

    /// Opens the socket, and lets requests wait.
    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        // It is started once.
        drop(self.threads.set(threads.clone()));
        match (self.open(), &self.named) {
            (Ok(opened), _) => drop(self.control.set(opened)),
            (Err(error), Some(place)) => {
                let message = format!("cannot open the control socket {}: {error}", self.path.display());
                return Err(Problem::at(&place.origin, message, None).into());
            }
            (Err(error), None) => {
                let why = format_args!(
                    "no control socket, as {} cannot be opened: {error}; `courser reload` and `courser status` do not \
                     reach this program unless `control` names another path",
                    self.path.display()
                );
                log(Level::Warning, why);
            }
        }
        Ok(())
    }

    fn stop(&self) -> bool {
        let Some(control) = self.control.get() else { return true };
        let deadline = Instant::now() + STOP_TIME;
        let has_stopped = control.stop(STOP_TIME);
        control.finish(deadline.saturating_duration_since(Instant::now()));
        has_stopped
    }
}

impl Endpoint for ControlService {
    fn begin(&self) -> Result<(), Failure> {
        let (Some(control), Some(threads)) = (self.control.get(), self.threads.get()) else { return Ok(()) };
        let served = control.serve(Arc::clone(&self.source), threads);
        served.map_err(|error| Failure::runtime("cannot start the thread control", error))
    }

    fn share(&self, shared: &mut Shared) -> io::Result<()> {
        let Some(control) = self.control.get() else { return Ok(()) };
        shared.descriptors.push(control.share()?);
        shared.process.control = Some(control.path().to_owned());
        Ok(())
    }

    fn end(&self, kept: &TakenOver) {
        if let Some(control) = self.control.get() {
            let end = if kept.control { Control::leave } else { Control::stop };
            end(control, STOP_TIME);
        }
    }
}
