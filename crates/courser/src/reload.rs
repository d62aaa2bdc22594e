//! Reload: the next generation is made and checked whole beside the running one, and then handed to every worker. After any
//! mistake the running one stays as it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use clap::ArgMatches;
use courser_proxy::{Command, Threads};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use crate::exit::Failure;
use crate::generation::{self, Generation};
use crate::log_files::LogFiles;
use crate::low_priority::at_low_priority;
use crate::prepared::{Inputs, config_file, read_again};
use crate::process::Process;
use crate::served::Served;
use crate::service::acme::AcmeService;
use crate::service::checks::ChecksService;
use crate::sockets::{Sockets, TAKE_OVER};
use crate::stamp::Stamps;
use crate::succeed::{self, Upgrader};

/// Time for the first addresses of names that are new, as at the start.
const FIRST_ADDRESSES: Duration = Duration::from_secs(2);

/// What a reload has done, as the control socket says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Number of the generation that serves new connections now; the one of the start is 1.
    pub(crate) generation: u64,
    /// What is different in it, one line each.
    pub(crate) changes: Vec<String>,
    /// What is different in the file and takes effect only when the program starts anew.
    pub(crate) needs_restart: Vec<String>,
    /// About the configuration, as `check` prints them.
    pub(crate) warnings: String,
    /// Why the running generation stays.
    pub(crate) refusal: Option<Refusal>,
}

/// Why the running generation stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// Exit code of the command: 2 for a mistake in the configuration or its files, 1 where the system refused.
    pub(crate) exit_code: u8,
    pub(crate) why: String,
}

/// Makes the generations after the first.
pub(crate) struct Reloader {
    /// The command line: the file that it names is read again.
    pub(crate) flags: ArgMatches,
    pub(crate) process: Arc<Process>,
    pub(crate) threads: Threads,
    pub(crate) upgrader: Upgrader,
    pub(crate) checks: Arc<ChecksService>,
    pub(crate) orders: Arc<AcmeService>,
    pub(crate) workers: Vec<UnboundedSender<Command>>,
    /// Nobody accepts any more.
    pub(crate) is_draining: Arc<AtomicBool>,
    pub(crate) log_files: LogFiles,
    pub(crate) current: Current,
    /// Of the files as the last attempt found them, before it read them.
    pub(crate) looked_at: Stamps,
}

/// What serves new connections.
pub(crate) struct Current {
    pub(crate) number: u64,
    pub(crate) inputs: Inputs,
    pub(crate) generation: Generation,
    pub(crate) sockets: Sockets,
    /// For the status.
    pub(crate) served: Served,
}

/// What is to serve new connections.
struct Next {
    inputs: Inputs,
    generation: Generation,
    served: Served,
    /// Only certificates are different.
    renews: bool,
}

impl Reloader {
    /// Replaces the running generation, or says what would be different if `only_check`.
    pub(crate) fn reload(&mut self, only_check: bool) -> Outcome {
        let mut outcome = Outcome { generation: self.current.number, ..Outcome::default() };
        if let Err(failure) = self.try_reload(only_check, &mut outcome) {
            outcome.refusal = Some(Refusal { exit_code: failure.exit_code(), why: failure.text(false) });
        }
        outcome
    }

    /// Has another process take over.
    pub(crate) fn upgrade(&self, program: Option<PathBuf>, silence: Duration) -> succeed::Outcome {
        self.upgrader.upgrade(program, silence, &self.current.sockets, &self.workers)
    }

    fn try_reload(&mut self, only_check: bool, outcome: &mut Outcome) -> Result<(), Failure> {
        if self.is_draining.load(Ordering::Relaxed) {
            return Err(Failure::Runtime("the program is about to end, and accepts no more".to_owned()));
        }
        let Next { inputs, generation, served, renews } = at_low_priority(|| self.next(outcome))?;
        if only_check {
            return Ok(());
        }
        // Even where nothing is different: a file may have been replaced by itself.
        let started = self.process.resolver.start(&self.threads);
        started.map_err(|error| Failure::runtime("cannot start the look-up of a backend", error))?;
        self.process.resolver.wait_for_first_answers(FIRST_ADDRESSES);
        let (taken, all_taken) = mpsc::channel();
        let commands = self.current.sockets.hand_over(&generation, &taken)?;
        drop(taken);
        for (worker, command) in self.workers.iter().zip(commands) {
            // A worker that has ended takes the program with it.
            let _ = worker.send(command);
        }
        if !renews {
            self.checks.apply(&inputs.config, &generation.pools)?;
            self.orders.apply(&inputs.config)?;
        }
        self.log_files.reopen();
        self.current.number += 1;
        self.current.served = served;
        outcome.generation = self.current.number;
        let before = (
            std::mem::replace(&mut self.current.inputs, inputs),
            std::mem::replace(&mut self.current.generation, generation),
        );
        match all_taken.recv_timeout(TAKE_OVER) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                outcome.warnings.push_str("warning: a worker is busy, and takes the generation over later\n");
            }
            Ok(never) => match never {},
            Err(mpsc::RecvTimeoutError::Disconnected) => {}
        }
        // What nobody needs any more goes when every worker has let it go, and here: with a hundred thousand hosts it takes
        // some milliseconds, which would be those of handshakes.
        at_low_priority(|| drop(before));
        Ok(())
    }

    /// Reads and builds what comes next, and writes to `outcome` how it differs.
    fn next(&mut self, outcome: &mut Outcome) -> Result<Next, Failure> {
        let current = &self.current;
        let inputs = read_again(&self.flags, &current.inputs, &mut self.looked_at)?;
        let Inputs { config, certificates, .. } = &inputs;
        outcome.warnings = inputs.warnings();
        self.compare(&inputs, outcome);
        let renews = inputs.differ_in_certificates_alone(&current.inputs);
        let generation = match renews {
            true => current.generation.renew(certificates),
            false => generation::build(config, certificates, &self.process, &current.generation.pools)?,
        };
        let served = Served::of(config, certificates);
        Ok(Next { inputs, generation, served, renews })
    }

    fn compare(&self, inputs: &Inputs, outcome: &mut Outcome) {
        let current = &self.current.inputs;
        let changes = match inputs.differ_in_certificates_alone(current) {
            true => Vec::new(),
            false => current.written.changes_to(&inputs.written),
        };
        for change in changes {
            let list = if change.needs_restart { &mut outcome.needs_restart } else { &mut outcome.changes };
            list.push(change.to_string());
        }
        let config = config_file(&self.flags);
        let files = current.stamps.changed(&inputs.stamps).into_iter();
        let others = files.filter(|file| Some(*file) != config.as_deref());
        outcome.changes.extend(others.map(|file| format!("file {}", file.display())));
    }
}
