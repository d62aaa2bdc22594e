//! The steps of the start, one function each, in the order of the calls in `run.rs`. What the process before this one has
//! handed over is taken instead of being opened anew.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock};

use courser_config::Config;
use courser_net::account::Account;
use courser_net::confinement::Confinement;
use courser_net::systemd;
use courser_proxy::{Admission, Command, Threads};
use courser_session::Vault;
use courser_sharing::Sharing;
use courser_telemetry::Sink;
use courser_telemetry::event::{Level, log};
use tokio::sync::mpsc::UnboundedSender;

use crate::admin::access::Access;
use crate::backends::Backends;
use crate::capacity;
use crate::exit::Failure;
use crate::generation::Generation;
use crate::pools::Pools;
use crate::process::Process;
use crate::readiness::Readiness;
use crate::service::Services;
use crate::service::acme::AcmeService;
use crate::service::admin::AdminService;
use crate::service::checks::ChecksService;
use crate::service::control::ControlService;
use crate::service::fleet::FleetService;
use crate::service::housekeeping::Housekeeping;
use crate::service::reload::ReloadHandle;
use crate::service::resolver::ResolverService;
use crate::service::watchdog::Watchdog;
use crate::session_file::SessionFile;
use crate::sharing::{self, SharingInputs};
use crate::sockets::{Sockets, TAKE_OVER};
use crate::status_source::StatusSource;
use crate::succeed::{Endpoints, OldProcesses, Succession};

/// What the steps share.
pub(super) struct Start<'a> {
    config: &'a Config,
    process: &'a Arc<Process>,
    threads: &'a Threads,
    /// Of the process before this one, until this one serves.
    succession: &'a mut Option<Succession>,
    pub(super) services: Services,
    pub(super) endpoints: Endpoints,
}

/// The listening sockets, and the commands that bring the first generation to the workers.
pub(super) struct Opened {
    sockets: Sockets,
    first: Vec<Command>,
    /// Disconnected when every worker has it.
    all_taken: Receiver<Infallible>,
}

impl<'a> Start<'a> {
    pub(super) fn new(
        config: &'a Config,
        process: &'a Arc<Process>,
        threads: &'a Threads,
        succession: &'a mut Option<Succession>,
    ) -> Self {
        let endpoints = Endpoints { list: Vec::new(), old: Arc::<OldProcesses>::default() };
        Self { config, process, threads, succession, services: Services::new(threads), endpoints }
    }

    /// Starts the fleet's thread, where there is one. Returns what workers share sessions by.
    pub(super) fn join_fleet(&mut self, inputs: SharingInputs) -> Result<Option<Sharing>, Failure> {
        let inherited = self.config.fleet.listen.as_ref().zip(self.succession.as_mut());
        let inherited = inherited.map(|(listen, succession)| succession.take_fleet(listen.value));
        let fleet =
            FleetService::new(self.config, inputs.interface, self.process, inherited.unwrap_or_default());
        let fleet = fleet.map(Arc::new);
        if let Some(fleet) = &fleet {
            self.services.start(Arc::clone(fleet) as _)?;
            self.endpoints.list.push(Arc::clone(fleet) as _);
        }
        let handle = fleet.and_then(|fleet| fleet.handle());
        Ok(sharing::share(self.config, inputs.store, self.process, handle))
    }

    pub(super) fn status_source(
        &self,
        sharing: Option<Sharing>,
        reload: &ReloadHandle,
        sink: &Sink,
        generation: &Generation,
    ) -> Arc<StatusSource> {
        let fleet = sharing.as_ref().and_then(|sharing| sharing.fleet.clone());
        let backends = Arc::new(Backends::new(self.process));
        // Before anyone can ask for them.
        backends.replace(generation.pools.list());
        let most = capacity::max_connections(self.config, self.process.workers());
        let to_reload = reload.clone();
        let acme = Arc::new(AcmeService::new(self.process, fleet, move || to_reload.ask()));
        Arc::new(StatusSource {
            process: Arc::clone(self.process),
            sharing,
            acme,
            services: self.services.running(),
            backends,
            reload: reload.clone(),
            log: sink.losses(),
            admission: Arc::new(Admission::new(most)),
            workers: OnceLock::new(),
            readiness: OnceLock::new(),
            history: Mutex::default(),
            old: Arc::clone(&self.endpoints.old),
            latest: Mutex::default(),
        })
    }

    /// Requests wait until this process serves.
    pub(super) fn open_control(
        &mut self,
        source: &Arc<StatusSource>,
        successor: Option<&Account>,
    ) -> Result<Arc<ControlService>, Failure> {
        let named = self.config.process.control.clone();
        let control = Arc::new(ControlService::new(named, successor.cloned(), Arc::clone(source)));
        let inherited = self.succession.as_mut();
        control.inherit(inherited.and_then(|succession| succession.take_control(control.intended_path())));
        self.services.start(Arc::clone(&control) as _)?;
        self.endpoints.list.push(Arc::clone(&control) as _);
        Ok(control)
    }

    /// Opens the listening sockets while names of backends are looked up, and waits for the first answers.
    pub(super) fn open_sockets(&mut self, generation: &Generation) -> Result<Opened, Failure> {
        let resolver = Arc::new(ResolverService::new(self.process));
        self.services.start(Arc::clone(&resolver) as _)?;
        let handed_over = self.succession.as_mut().map(|succession| std::mem::take(&mut succession.sockets));
        let mut sockets = Sockets::new(self.process.workers(), handed_over.unwrap_or_default())?;
        let (taken, all_taken) = mpsc::channel();
        let first = sockets.hand_over(generation, &taken)?;
        resolver.wait_for_first_answers();
        Ok(Opened { sockets, first, all_taken })
    }

    pub(super) fn check_servers(
        &self,
        backends: &Arc<Backends>,
        confinement: Option<Arc<Confinement>>,
        pools: &Pools,
    ) -> Result<Arc<ChecksService>, Failure> {
        let checks = Arc::new(ChecksService::new(backends, confinement));
        self.services.start(Arc::clone(&checks) as _)?;
        checks.apply(self.config, pools)?;
        Ok(checks)
    }

    pub(super) fn keep_house(&self, sink: &Sink) -> Result<Arc<Housekeeping>, Failure> {
        let housekeeping = Arc::new(Housekeeping::new(self.process, self.session_file(), sink.losses()));
        self.services.start(Arc::clone(&housekeeping) as _)?;
        Ok(housekeeping)
    }

    fn session_file(&self) -> Option<SessionFile> {
        let path = self.config.sessions.file.as_ref()?.value.clone();
        let cache = Arc::clone(self.process.sessions.cache.as_ref()?);
        Some(SessionFile { path, vault: Vault::new(Arc::clone(&self.process.keys.keys)), cache })
    }

    /// As [`Self::open_control`], for HTTP, where it has an address.
    pub(super) fn open_admin(
        &mut self,
        source: &Arc<StatusSource>,
        access: Access,
        readiness: &Arc<Readiness>,
    ) -> Result<(), Failure> {
        // Set once.
        drop(source.readiness.set(Arc::clone(readiness)));
        let settings = self.config.admin.clone();
        if settings.listen.is_empty() {
            return Ok(());
        }
        let listen: Vec<_> = settings.listen.iter().map(|listen| listen.value.to_string()).collect();
        let inherited = self.succession.as_mut().map(|succession| succession.take_admin(&listen));
        let (source, readiness) = (Arc::clone(source), Arc::clone(readiness));
        let admin = AdminService::new(settings, access, source, readiness, inherited.unwrap_or_default());
        let admin = Arc::new(admin);
        self.services.start(Arc::clone(&admin) as _)?;
        self.endpoints.list.push(admin);
        Ok(())
    }

    /// Orders certificates, where a host has some ordered. Not before a CA that asks is answered.
    pub(super) fn order_certificates(&self, orders: &Arc<AcmeService>) -> Result<(), Failure> {
        self.services.start(Arc::clone(orders) as _)?;
        orders.apply(self.config)
    }

    /// Has the service manager told that workers turn, where it asks for that.
    pub(super) fn watch_workers(&self) -> Result<(), Failure> {
        let watchdog = Watchdog::new(self.process, self.succession.is_some());
        watchdog.map_or(Ok(()), |watchdog| self.services.start(Arc::new(watchdog)))
    }

    /// Has the workers accept: at once, or in the place of the process before this one.
    pub(super) fn serve(
        &mut self,
        opened: Opened,
        workers: &[UnboundedSender<Command>],
        readiness: &Readiness,
    ) -> Result<Sockets, Failure> {
        let Opened { mut sockets, first, all_taken } = opened;
        let accept = || {
            // A worker that has ended takes the program with it.
            workers.iter().zip(first).for_each(|(worker, first)| drop(worker.send(first)));
            // The end of the channel: every worker accepts, or has ended, which the supervisor finds out.
            let _ = all_taken.recv_timeout(TAKE_OVER);
            readiness.set_accepting();
        };
        if self.succession.is_some() {
            self.succeed(&sockets, accept)?;
        } else {
            self.endpoints.begin()?;
            accept();
            systemd::notify("READY=1\nSTATUS=generation 1 serves");
        }
        sockets.forget_others();
        Ok(sockets)
    }

    /// Serves in the place of the process before this one, and follows it and those that drain already.
    fn succeed(&mut self, sockets: &Sockets, accept: impl FnOnce()) -> Result<(), Failure> {
        let Some(predecessor) = self.succession else { return Ok(()) };
        let cache = self.process.sessions.cache.as_ref();
        if let (Some(memory), Some(cache)) = (predecessor.memory.take(), cache) {
            let replayed = memory.replay(cache);
            let count = replayed.map_err(|error| Failure::runtime("cannot read the sessions", error))?;
            log(Level::Info, format_args!("upgrade: sessions taken over: {count}"));
        }
        let kept = sockets.addresses().map(ToString::to_string).collect();
        let old = predecessor.take_over(kept, cache.map(Arc::as_ref), accept)?;
        *self.succession = None;
        systemd::notify(&format!("MAINPID={}\nREADY=1\nSTATUS=generation 1 serves", std::process::id()));
        if let Err(failure) = self.endpoints.begin() {
            // It serves already, and nobody else does.
            log(Level::Error, failure.text(false).trim_end());
        }
        for (old, channel) in old {
            let pid = old.pid;
            if let Err(error) = self.endpoints.old.follow(old, channel, cache.cloned(), self.threads) {
                log(Level::Warning, format_args!("upgrade: process {pid} cannot be followed: {error}"));
            }
        }
        log(Level::Info, "upgrade: this process serves");
        Ok(())
    }
}
