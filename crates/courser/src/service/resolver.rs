//! Look-ups of the names of backends.

use std::sync::Arc;
use std::time::Duration;

use courser_proxy::Threads;

use super::{STOP_TIME, Service};
use crate::exit::Failure;
use crate::process::Process;

/// Time that the start waits for the first addresses, of all names together: longer than a resolver takes that works.
const FIRST_ADDRESSES: Duration = Duration::from_secs(2);

pub(crate) struct ResolverService {
    process: Arc<Process>,
}

impl ResolverService {
    pub(crate) fn new(process: &Arc<Process>) -> Self {
        Self { process: Arc::clone(process) }
    }

    /// Waits until names have addresses, but not for long: what can be served is.
    pub(crate) fn wait_for_first_answers(&self) {
        self.process.resolver.wait_for_first_answers(FIRST_ADDRESSES);
    }
}

impl Service for ResolverService {
    fn name(&self) -> &'static str {
        "resolver"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let started = self.process.resolver.start(threads);
        started.map_err(|error| Failure::runtime("cannot start the look-up of a backend", error))
    }

    fn stop(&self) -> bool {
        self.process.resolver.stop(STOP_TIME)
    }
}
