//! The thread that orders: looks when the next certificate is due, orders it, writes it, and says that there is a new one.
//! One order at a time: a certificate that cannot be had costs the others some minutes, and no CA gets a crowd.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use courser_telemetry::event::{Level, log};
use tokio::runtime::Builder;

use crate::account;
use crate::board::ChallengeBoard;
use crate::client::Ca;
use crate::entry::{Entry, now};
use crate::folder::{Folder, Lock, SetState};
use crate::handle::{Handle, RecordError, Request, Requests};
use crate::names::NameSet;
use crate::order::Job;
use crate::settings::Settings;
use crate::status::{DryRun, TxtRecord};
use crate::trouble::Trouble;

/// Between two looks at whether another process has let go of the lock.
const LOCKED: Duration = Duration::from_secs(2);

/// Longest sleep: clocks are set, and machines sleep.
const LONGEST_SLEEP: i64 = 3600;

/// What orders.
pub struct Agent {
    settings: Settings,
    entries: Vec<Entry>,
    board: Arc<dyn ChallengeBoard>,
    /// There is a new pair.
    renewed: Box<dyn Fn() + Send>,
    requests: Requests,
    /// Said once.
    waits_for_lock: bool,
}

impl Agent {
    /// An agent that does not run yet, and the way to it. `renewed` is called when there is a new pair.
    pub fn new(
        settings: Settings,
        sets: Vec<NameSet>,
        board: Arc<dyn ChallengeBoard>,
        renewed: impl Fn() + Send + 'static,
    ) -> (Self, Handle) {
        let (requests, handle) = Requests::new();
        let renewed = Box::new(renewed);
        let mut agent =
            Self { settings, entries: Vec::new(), board, renewed, requests, waits_for_lock: false };
        agent.take(sets);
        (agent, handle)
    }

    /// Orders until it is stopped.
    ///
    /// # Errors
    /// When the runtime cannot be made.
    pub fn run(mut self) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut stop = self.requests.stop.clone();
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => {}
                () = self.serve() => {}
            }
        });
        // A look-up of a name cannot be ended.
        runtime.shutdown_background();
        Ok(())
    }

    async fn serve(&mut self) {
        let lock = self.lock().await;
        // Whoever had the lock may have written.
        let sets = self.entries.drain(..).map(|entry| entry.set).collect();
        self.take(sets);
        loop {
            self.tend().await;
            self.report(None);
            let pause =
                u64::try_from(self.next().saturating_sub(now()).clamp(0, LONGEST_SLEEP)).unwrap_or_default();
            tokio::select! {
                request = self.requests.received.recv() => match request {
                    Some(request) => self.answer(request).await,
                    None => break,
                },
                () = tokio::time::sleep(Duration::from_secs(pause)) => {}
            }
        }
        drop(lock);
    }

    /// Waits until no other process orders: one that this one has replaced goes on for a moment.
    async fn lock(&mut self) -> Option<Lock> {
        loop {
            match Folder::lock(&self.settings.folder) {
                Ok(Some(lock)) => return Some(lock),
                Ok(None) if !self.waits_for_lock => {
                    self.waits_for_lock = true;
                    log(Level::Info, "certificates: another process orders them; this one waits for its end");
                }
                Ok(None) => {}
                Err(error) => log(Level::Error, format_args!("certificates cannot be ordered: {error}")),
            }
            tokio::time::sleep(LOCKED).await;
            while let Ok(request) = self.requests.received.try_recv() {
                // Whoever waits for another answer hears that there is none.
                if let Request::Replace(settings, sets) = request {
                    self.settings = *settings;
                    self.take(sets);
                }
            }
        }
    }

    fn take(&mut self, sets: Vec<NameSet>) {
        let folder = self.folder();
        self.entries = sets.into_iter().map(|set| Entry::read(set, &folder)).collect();
        self.report(None);
    }

    fn folder(&self) -> Folder {
        Folder::of(&self.settings.folder, &self.settings.directory)
    }

    /// When something is to be done next.
    fn next(&self) -> i64 {
        self.entries.iter().map(Entry::next).min().unwrap_or(i64::MAX)
    }

    async fn answer(&mut self, request: Request) {
        match request {
            Request::Replace(settings, sets) => {
                self.settings = *settings;
                self.take(sets);
            }
            Request::OrderNow(answer) => {
                let mut waiting = 0;
                for entry in self.entries.iter_mut().filter(|entry| entry.state.failures > 0) {
                    entry.state.not_before = None;
                    waiting += 1;
                }
                self.tend().await;
                self.report(None);
                let _ = answer.send(waiting);
            }
            Request::DryRun(directory, answer) => {
                let tried = self.dry_run(directory).await;
                let _ = answer.send(tried);
            }
            Request::Record(name, answer) => {
                let record = self.record(&name).await;
                let _ = answer.send(record);
            }
        }
    }

    /// Does what is due.
    async fn tend(&mut self) {
        let now = now();
        let due: Vec<usize> =
            (0..self.entries.len()).filter(|&index| self.entries[index].next() <= now).collect();
        if due.is_empty() {
            return;
        }
        let folder = self.folder();
        let ca = match Ca::connect(&self.settings, &folder).await {
            Ok(ca) => ca,
            Err(trouble) => {
                for index in due {
                    let entry = &mut self.entries[index];
                    match entry.due().at <= now {
                        true => entry.fail(&trouble, &folder),
                        false => entry.ask_later(&trouble, &folder),
                    }
                }
                return;
            }
        };
        for index in due {
            if self.entries[index].due().at <= now {
                self.report(Some(index));
                let (board, profile) = (Arc::clone(&self.board), self.settings.profile.clone());
                if self.entries[index].order(&ca, profile.as_deref(), &*board, &folder).await {
                    (self.renewed)();
                }
            }
            self.entries[index].ask(&ca, &folder).await;
        }
    }

    async fn dry_run(&mut self, directory: Option<String>) -> Vec<DryRun> {
        let mut settings = self.settings.clone();
        if let Some(directory) = directory.filter(|directory| *directory != settings.directory) {
            // Another CA's, or its staging: it knows neither our account with this one nor its profiles.
            (settings.directory, settings.external) = (directory, None);
        }
        let folder = Folder::of(&settings.folder, &settings.directory);
        let ca = Ca::connect(&settings, &folder).await;
        let mut tried = Vec::new();
        for entry in &self.entries {
            let failure = match &ca {
                Err(trouble) => Some(trouble.to_string()),
                Ok(ca) => {
                    let profile =
                        settings.profile.as_deref().filter(|profile| ca.check_profile(Some(profile)).is_ok());
                    let save = |_: &SetState| Ok(());
                    let (set, board) = (&entry.set, &*self.board);
                    let job = Job { ca, set, profile, replaces: None, board, save: &save };
                    job.obtain(&mut SetState::new()).await.err().map(|trouble| trouble.to_string())
                }
            };
            tried.push(DryRun { names: entry.set.names(), directory: settings.directory.clone(), failure });
        }
        tried
    }

    async fn record(&mut self, name: &str) -> Result<TxtRecord, RecordError> {
        let base = name.strip_prefix("*.").unwrap_or(name);
        let Some(entry) = self.entries.iter().find(|entry| entry.set.base() == base) else {
            let names: Vec<String> = self.entries.iter().map(|entry| entry.set.to_string()).collect();
            let names = names.join("; ");
            return Err(RecordError::Name(format!(
                "no certificate is ordered here for {name}; there is {names}"
            )));
        };
        let (set, folder) = (entry.set.clone(), self.folder());
        let failed = |trouble: Trouble| RecordError::Ca(trouble.to_string());
        let ca = Ca::connect(&self.settings, &folder).await.map_err(failed)?;
        account::record(&self.settings, &ca.https, &ca.account, &set).await.map_err(failed)
    }

    /// Puts what is known where [`Handle::status`] finds it.
    fn report(&self, ordering: Option<usize>) {
        let rows = self.entries.iter().enumerate();
        let rows = rows.map(|(index, entry)| entry.status(&self.settings.directory, ordering == Some(index)));
        self.requests.report(rows.collect());
    }
}
