//! The control socket, where one is configured.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use courser_config::{Located, Problem};
use courser_proxy::Threads;

use super::{STOP_TIME, Service};
use crate::control::Control;
use crate::exit::Failure;
use crate::status_source::StatusSource;

pub(crate) struct ControlService {
    path: Located<PathBuf>,
    source: Arc<StatusSource>,
    control: OnceLock<Control>,
}

impl ControlService {
    pub(crate) fn new(path: Located<PathBuf>, source: Arc<StatusSource>) -> Self {
        Self { path, source, control: OnceLock::new() }
    }
}

impl Service for ControlService {
    fn name(&self) -> &'static str {
        "control socket"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let path = &self.path.value;
        let started = Control::start(path, Arc::clone(&self.source), threads).map_err(|error| {
            let message = format!("cannot open the control socket {}: {error}", path.display());
            Failure::from(Problem::at(&self.path.origin, message, None))
        })?;
        // It is started once.
        drop(self.control.set(started));
        Ok(())
    }

    fn stop(&self) -> bool {
        self.control.get().is_none_or(|control| control.stop(STOP_TIME))
    }
}
