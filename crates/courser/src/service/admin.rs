//! HTTP for operators and monitoring, where an address is configured.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use courser_config::{Admin, ListenAddress, Located, Problem};
use courser_proxy::Threads;
use courser_telemetry::event::{Level, log};
use courser_telemetry::metrics::MOST_OF_HOST;

use super::{STOP_TIME, Service};
use crate::admin::access::Access;
use crate::admin::pages::AdminPages;
use crate::admin::{AdminServer, AdminSocket};
use crate::exit::Failure;
use crate::readiness::Readiness;
use crate::status_source::StatusSource;
use crate::succeed::{Endpoint, Shared, TakenOver};

pub(crate) struct AdminService {
    settings: Admin,
    pages: Arc<AdminPages>,
    /// Of the process before this one, which answers until [`Self::begin`], with their addresses as configured.
    inherited: Mutex<Vec<(String, OwnedFd)>>,
    /// Open, and not served yet.
    opened: Mutex<Vec<AdminSocket>>,
    /// For another process, with their addresses as configured.
    shared: Mutex<Vec<(String, OwnedFd)>>,
    threads: OnceLock<Threads>,
    server: OnceLock<AdminServer>,
}

impl AdminService {
    pub(crate) fn new(
        settings: Admin,
        access: Access,
        source: Arc<StatusSource>,
        readiness: Arc<Readiness>,
        inherited: Vec<(String, OwnedFd)>,
    ) -> Self {
        Self {
            settings,
            pages: Arc::new(AdminPages::new(access, source, readiness)),
            inherited: Mutex::new(inherited),
            opened: Mutex::default(),
            shared: Mutex::default(),
            threads: OnceLock::new(),
            server: OnceLock::new(),
        }
    }

    fn open(&self, address: &ListenAddress) -> io::Result<AdminSocket> {
        let mut inherited = lock(&self.inherited);
        match inherited.iter().position(|(known, _)| *known == address.to_string()) {
            Some(place) => Ok(AdminSocket::adopt(address, inherited.swap_remove(place).1)),
            None => AdminSocket::open(address),
        }
    }
}

impl Service for AdminService {
    fn name(&self) -> &'static str {
        "HTTP server for operators"
    }

    /// Opens its addresses, and lets requests wait.
    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let open = |address: &Located<ListenAddress>| {
            let opened = self.open(&address.value).and_then(|socket| {
                lock(&self.shared).push((address.value.to_string(), socket.share()?));
                Ok(socket)
            });
            opened.map_err(|error| {
                let message = format!("cannot open {} for operators: {error}", address.value);
                Failure::from(Problem::at(&address.origin, message, None))
            })
        };
        let sockets = self.settings.listen.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        for socket in &sockets {
            log(Level::Info, format_args!("for operators and monitoring: {}", socket.url()));
        }
        let series = self.pages.series();
        log(Level::Info, format_args!("metrics: {series} series; each host adds up to {MOST_OF_HOST}"));
        *lock(&self.opened) = sockets;
        // It is started once.
        drop(self.threads.set(threads.clone()));
        Ok(())
    }

    fn stop(&self) -> bool {
        self.server.get().is_none_or(|server| server.stop(STOP_TIME, &[]))
    }
}

impl Endpoint for AdminService {
    fn begin(&self) -> Result<(), Failure> {
        let Some(threads) = self.threads.get() else { return Ok(()) };
        let sockets = std::mem::take(&mut *lock(&self.opened));
        let started = AdminServer::start(sockets, Arc::clone(&self.pages), threads);
        let server = started.map_err(|error| Failure::runtime("cannot start the thread admin", error))?;
        // It begins once.
        drop(self.server.set(server));
        Ok(())
    }

    fn share(&self, shared: &mut Shared) -> io::Result<()> {
        lock(&self.shared).iter().try_for_each(|(address, socket)| {
            shared.descriptors.push(socket.try_clone()?);
            shared.process.admin.push(address.clone());
            Ok(())
        })
    }

    fn end(&self, kept: &TakenOver) {
        lock(&self.shared).clear();
        let path = |kept: &String| kept.strip_prefix("unix:").map(PathBuf::from);
        let kept: Vec<_> = kept.admin.iter().filter_map(path).collect();
        if let Some(server) = self.server.get() {
            server.stop(STOP_TIME, &kept);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
