//! The authorities that certificates of clients and of backends have to come from: their files read once each, all
//! problems in one run.

use std::collections::HashMap;
use std::path::PathBuf;

use courser_config::{BackendTls, ClientAuth as Mode, Config, HostConfig, Located, Problem, Problems};
use courser_net::account::Account;
use courser_tls::{Authorities, ClientAuth, Demand, Revocation, Verify};

use crate::exit::Failure;
use crate::file_error::unusable;
use crate::input_file;
use crate::validity::{now, out_of_validity};

/// Authorities by the files that they were read from.
#[derive(Default)]
pub(crate) struct Trusted {
    by_file: HashMap<PathBuf, Authorities>,
    /// Those that the system trusts, where a backend is to be verified by them.
    system: Option<Authorities>,
}

impl Trusted {
    /// Reads every file that `config` names; errors and warnings go to `problems`.
    pub(crate) fn load(config: &Config, reader: &Account, problems: &mut Problems) -> Self {
        let mut trusted = Self::default();
        let mut failed = Vec::new();
        let of_clients = config.hosts().flat_map(|host| &host.client_ca);
        let of_backends = config.backend_tls().into_iter().flat_map(|tls| match &tls.value.verify {
            courser_config::Verify::Files(files) => files.as_slice(),
            _ => &[],
        });
        for file in of_clients.chain(of_backends) {
            if trusted.by_file.contains_key(&file.value) || failed.contains(&&file.value) {
                continue;
            }
            match read(file, reader) {
                Ok(authorities) => {
                    problems.extend(validity_problems(file, &authorities, config.process.strict));
                    trusted.by_file.insert(file.value.clone(), authorities);
                }
                Err(wrong) => {
                    problems.extend(wrong);
                    failed.push(&file.value);
                }
            }
        }
        let backends = config.backend_tls();
        if let Some(tls) = backends.iter().find(|tls| tls.value.verify == courser_config::Verify::System) {
            match Authorities::system() {
                Ok(system) => trusted.system = Some(system),
                Err(why) => problems.push(no_system(tls, &why)),
            }
        }
        trusted
    }

    /// How a backend proves who it is.
    pub(crate) fn verify(&self, tls: &BackendTls) -> Verify {
        match &tls.verify {
            courser_config::Verify::Pins(pins) => Verify::Pins(pins.clone()),
            courser_config::Verify::Off => Verify::Off,
            courser_config::Verify::System | courser_config::Verify::Files(_) => {
                Verify::Authorities(self.of_backends(tls).into_iter().cloned().collect())
            }
        }
    }

    /// The authorities that issue to clients of a host.
    pub(crate) fn of_clients(&self, host: &HostConfig) -> Vec<&Authorities> {
        host.client_ca.iter().filter_map(|file| self.by_file.get(&file.value)).collect()
    }

    /// The authorities that issue to backends.
    pub(crate) fn of_backends(&self, tls: &BackendTls) -> Vec<&Authorities> {
        match &tls.verify {
            courser_config::Verify::System => self.system.iter().collect(),
            courser_config::Verify::Files(files) => {
                files.iter().filter_map(|file| self.by_file.get(&file.value)).collect()
            }
            courser_config::Verify::Pins(_) | courser_config::Verify::Off => Vec::new(),
        }
    }

    pub(crate) fn client_auth(
        &self,
        host: &HostConfig,
        revocation: Option<Revocation>,
    ) -> Result<ClientAuth, Failure> {
        let demand = match host.client_auth {
            Mode::None => return Ok(ClientAuth::none()),
            Mode::Optional => Demand::Optional,
            Mode::Required => Demand::Required,
        };
        // Every file has been read. If one ever was not, the library refuses an empty set, and fewer authorities let in
        // fewer clients.
        let cannot = format_args!("host {}: cannot check client certificates", host.name).to_string();
        ClientAuth::new(demand, self.of_clients(host), revocation)
            .map_err(|error| Failure::runtime(cannot, error))
    }
}

pub(crate) fn read(file: &Located<PathBuf>, reader: &Account) -> Result<Authorities, Problems> {
    let (place, path) = (&file.origin, &file.value);
    let text = input_file::read(path).map_err(|refusal| unusable(place, path, &refusal, reader))?;
    Authorities::from_pem(&text).map_err(|error| {
        Problem::at(place, format!("{}: {error}", path.display()), Some(error.hint().into())).into()
    })
}

fn no_system(tls: &Located<BackendTls>, why: &str) -> Problem {
    let message = format!("the certificates that the system trusts cannot be read: {why}");
    let help = "install them (Debian: ca-certificates), or name files: `verify = [\"ca.pem\"]`";
    Problem::at(&tls.origin, message, Some(help.into()))
}

fn validity_problems(file: &Located<PathBuf>, authorities: &Authorities, strict: bool) -> Vec<Problem> {
    let problem = |(subject, validity)| {
        let what = out_of_validity(validity)?;
        let message = format!("{}: the authority `{subject}` {what}", file.value.display());
        let help = match strict {
            true => "remove --strict to trust it with a warning",
            false => "what it has issued is accepted anyway; --strict refuses it",
        };
        let problem = Problem::at(&file.origin, message, Some(help.into()));
        Some(if strict { problem } else { problem.as_warning() })
    };
    authorities.invalid(now()).into_iter().filter_map(problem).collect()
}
