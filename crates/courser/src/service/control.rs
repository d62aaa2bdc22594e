//! The control socket: at the path that is configured, or at its default one, without which the program serves as well.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use courser_config::{Located, Problem};
use courser_net::account::Account;
use courser_proxy::Threads;
use courser_telemetry::event::{Level, log};

use super::{STOP_TIME, Service};
use crate::control::{self, Control};
use crate::exit::Failure;
use crate::status_source::StatusSource;

pub(crate) struct ControlService {
    /// Where the configuration says; it has to be opened there.
    named: Option<Located<PathBuf>>,
    path: PathBuf,
    /// The user that the program switches to.
    successor: Option<Account>,
    source: Arc<StatusSource>,
    control: OnceLock<Control>,
}

impl ControlService {
    pub(crate) fn new(
        named: Option<Located<PathBuf>>,
        successor: Option<Account>,
        source: Arc<StatusSource>,
    ) -> Self {
        let path = named.as_ref().map_or_else(control::default_path, |named| named.value.clone());
        Self { named, path, successor, source, control: OnceLock::new() }
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
}

impl Service for ControlService {
    fn name(&self) -> &'static str {
        "control socket"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let prepared = if self.named.is_none() { self.make_folder() } else { Ok(()) };
        let started = prepared.and_then(|()| Control::start(&self.path, Arc::clone(&self.source), threads));
        match (started, &self.named) {
            // It is started once.
            (Ok(started), _) => drop(self.control.set(started)),
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
        self.control.get().is_none_or(|control| control.stop(STOP_TIME))
    }
}
