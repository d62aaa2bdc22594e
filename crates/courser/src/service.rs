//! What goes on beside the workers, with one life cycle: started in order, looked after once a second, stopped in reverse.
//! The crates that do the work offer plain handles and do not know this trait.

pub(crate) mod acme;
pub(crate) mod admin;
pub(crate) mod checks;
pub(crate) mod control;
pub(crate) mod fleet;
pub(crate) mod housekeeping;
pub(crate) mod reload;
pub(crate) mod resolver;
pub(crate) mod watchdog;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use courser_proxy::Threads;
use courser_telemetry::Counts;
use courser_telemetry::event::{Level, log};

use crate::exit::Failure;
use crate::status::Status;

/// Time in which the threads of a service have to end.
pub(crate) const STOP_TIME: Duration = Duration::from_secs(1);

pub(crate) trait Service: Send + Sync {
    /// For messages.
    fn name(&self) -> &'static str;

    fn start(&self, threads: &Threads) -> Result<(), Failure>;

    /// Does what is due, about once a second on the main thread. May not wait.
    fn tick(&self, _now: Instant) {}

    /// Ends its threads. Returns whether they have ended within [`STOP_TIME`].
    fn stop(&self) -> bool;

    /// Adds its part to the status of the program, and its numbers to the counts. Called on any thread.
    fn status(&self, _status: &mut Status, _counts: &mut Counts) {}
}

/// The services that run. Dropped, they are stopped.
pub(crate) struct Services {
    threads: Threads,
    running: Running,
}

/// The services that run, for reading.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Mutex<Vec<Arc<dyn Service>>>>);

impl Services {
    pub(crate) fn new(threads: &Threads) -> Self {
        Self { threads: threads.clone(), running: Running::default() }
    }

    pub(crate) fn running(&self) -> Running {
        self.running.clone()
    }

    pub(crate) fn start(&self, service: Arc<dyn Service>) -> Result<(), Failure> {
        service.start(&self.threads)?;
        self.running.lock().push(service);
        Ok(())
    }

    pub(crate) fn tick(&self) {
        let now = Instant::now();
        self.running.list().iter().for_each(|service| service.tick(now));
    }

    /// Stops all, the last one that was started first.
    pub(crate) fn stop(&self) {
        let running = std::mem::take(&mut *self.running.lock());
        for service in running.into_iter().rev() {
            if !service.stop() {
                let name = service.name();
                log(Level::Warning, format_args!("the {name} has not stopped within {STOP_TIME:?}"));
            }
        }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Running {
    pub(crate) fn status(&self, status: &mut Status, counts: &mut Counts) {
        self.list().iter().for_each(|service| service.status(status, counts));
    }

    fn list(&self) -> Vec<Arc<dyn Service>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<dyn Service>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use courser_net::account::Account;
    use courser_session::{EpochLength, FleetKeys};
    use courser_testkit::Folder;

    use super::control::ControlService;
    use super::fleet::FleetService;
    use super::housekeeping::Housekeeping;
    use super::resolver::ResolverService;
    use super::*;
    use crate::backends::Backends;
    use crate::certificates::{self, Proof};
    use crate::fleet_keys::{PersistentKeys, unix_now};
    use crate::generation;
    use crate::pools::Pools;
    use crate::process::Process;
    use crate::status_source::StatusSource;

    #[test]
    fn each_service_stops_within_a_second() {
        let folder = Folder::new();
        let place = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let control = folder.join("control.sock");
        let text = format!(
            "control = '{}'\n[fleet]\nkey = 'unread'\nlisten = '{place}'\n[[listener]]\nbackend = 'localhost:80'",
            control.display()
        );
        let config = courser_config::from_toml(&text, Path::new("courser.toml")).unwrap().config;
        let keys = FleetKeys::alone(EpochLength::DEFAULT, config.sessions.lifetime, unix_now()).unwrap();
        let keys = PersistentKeys::of_host(keys, None);
        let mut process = Process::new(&config, keys).unwrap();
        process.fleet = Some(process.keys.clone());
        let certificates = certificates::load(&config, &Account::current(), None, Proof::Now).ok().unwrap();
        let _generation =
            generation::build(&config, &certificates, &process, &Pools::default()).ok().unwrap();
        let process = Arc::new(process);
        let threads = Threads::new(|panicked| panic!("{panicked:?}"));
        let services = Services::new(&threads);
        let fleet = FleetService::new(&config, None, &process, Vec::new()).unwrap();
        services.start(Arc::new(fleet)).unwrap();
        let source = StatusSource {
            process: Arc::clone(&process),
            acme: Arc::new(acme::AcmeService::new(&process, None, || {})),
            sharing: None,
            services: services.running(),
            reload: reload::ReloadHandle::new(crate::served::Served::of(&config, &certificates)).0,
            backends: Arc::new(Backends::new(&process)),
            log: Arc::default(),
            admission: Arc::new(courser_proxy::Admission::new(1)),
            workers: std::sync::OnceLock::new(),
            readiness: std::sync::OnceLock::new(),
            history: Mutex::default(),
            old: Arc::default(),
            latest: Mutex::default(),
        };
        services
            .start(Arc::new(ControlService::new(config.process.control, None, Arc::new(source))))
            .unwrap();
        services.start(Arc::new(ResolverService::new(&process))).unwrap();
        services.start(Arc::new(Housekeeping::new(&process, None, Arc::default()))).unwrap();
        services.tick();
        let mut status = Status::default();
        services.running().status(&mut status, &mut Counts::default());
        assert!(status.messages.is_some(), "the fleet reports its part");
        assert!(UdpSocket::bind(place).is_err() && UnixStream::connect(&control).is_ok());
        for service in services.running().list() {
            let begin = Instant::now();
            assert!(service.stop(), "{}", service.name());
            assert!(begin.elapsed() < STOP_TIME, "{}: {:?}", service.name(), begin.elapsed());
        }
        assert!(UdpSocket::bind(place).is_ok(), "the fleet's socket is closed");
        assert!(UnixStream::connect(&control).is_err() && !control.exists());
    }
}
