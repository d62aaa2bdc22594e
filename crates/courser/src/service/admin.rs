//! HTTP for operators and monitoring, where an address is configured.

use std::sync::{Arc, OnceLock};

use courser_config::{Admin, Config, Located, Problem};
use courser_net::account::Account;
use courser_proxy::Threads;
use courser_telemetry::event::{Level, log};
use zeroize::Zeroizing;

use super::{STOP_TIME, Service};
use crate::admin::access::Access;
use crate::admin::answers::Answers;
use crate::admin::{AdminServer, AdminSocket};
use crate::exit::Failure;
use crate::file_error::unusable;
use crate::readiness::Readiness;
use crate::secret_file;
use crate::status_source::StatusSource;

pub(crate) struct AdminService {
    settings: Admin,
    answers: Arc<Answers>,
    server: OnceLock<AdminServer>,
}

impl AdminService {
    pub(crate) fn new(
        settings: Admin,
        access: Access,
        source: Arc<StatusSource>,
        readiness: Arc<Readiness>,
    ) -> Self {
        Self { settings, answers: Arc::new(Answers::new(access, source, readiness)), server: OnceLock::new() }
    }
}

/// Reads the token.
pub(crate) fn access(config: &Config, reader: &Account) -> Result<Access, Failure> {
    let Admin { allow, token, server_names, .. } = &config.admin;
    let token = token.as_ref().map(|file| read_token(file, reader)).transpose()?;
    Ok(Access { allow: allow.clone(), token, server_names: server_names.clone() })
}

fn read_token(file: &Located<std::path::PathBuf>, reader: &Account) -> Result<Zeroizing<String>, Failure> {
    let path = &file.value;
    let text =
        secret_file::read(path, reader).map_err(|refusal| unusable(&file.origin, path, &refusal, reader))?;
    let token = Zeroizing::new(text.trim().to_owned());
    if (16..=512).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(token);
    }
    let message = format!("{}: a token has 16 to 512 visible ASCII characters", path.display());
    Err(Problem::at(&file.origin, message, Some("make one: openssl rand -hex 32".to_owned())).into())
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
        let started = AdminServer::start(sockets, Arc::clone(&self.answers), threads);
        let server = started.map_err(|error| Failure::runtime("cannot start the thread admin", error))?;
        // It is started once.
        drop(self.server.set(server));
        Ok(())
    }

    fn stop(&self) -> bool {
        self.server.get().is_none_or(|server| server.stop(STOP_TIME))
    }
}
