//! HTTP for operators and monitoring, where an address is configured.

use std::sync::{Arc, OnceLock};

use courser_config::{Admin, Located, Problem};
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

pub(crate) struct AdminService {
    settings: Admin,
    pages: Arc<AdminPages>,
    server: OnceLock<AdminServer>,
}

impl AdminService {
    pub(crate) fn new(
        settings: Admin,
        access: Access,
        source: Arc<StatusSource>,
        readiness: Arc<Readiness>,
    ) -> Self {
        Self {
            settings,
            pages: Arc::new(AdminPages::new(access, source, readiness)),
            server: OnceLock::new(),
        }
    }
}

impl Service for AdminService {
    fn name(&self) -> &'static str {
        "HTTP server for operators"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let open = |address: &Located<courser_config::ListenAddress>| {
            AdminSocket::open(&address.value).map_err(|error| {
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
        let started = AdminServer::start(sockets, Arc::clone(&self.pages), threads);
        let server = started.map_err(|error| Failure::runtime("cannot start the thread admin", error))?;
        // It is started once.
        drop(self.server.set(server));
        Ok(())
    }

    fn stop(&self) -> bool {
        self.server.get().is_none_or(|server| server.stop(STOP_TIME))
    }
}
