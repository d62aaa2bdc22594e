//! Who is measured: courser and the rivals that are installed.

use std::{net::SocketAddr, path::PathBuf, process::Command};

use courser_testkit::{
    Courser, Process,
    client::{Resume, Version},
    competitor::{Competitor, Running, Setting, TLS13_SUITE},
};

use crate::options::Options;

const PROGRAM: &str = env!("CARGO_BIN_EXE_courser");

/// A terminator that can be started.
#[derive(Debug)]
pub(crate) enum Terminator {
    Courser,
    Rival { rival: Competitor, program: PathBuf },
}

impl Terminator {
    /// Those that are wanted and installed, courser first; says who is missing.
    pub(crate) fn available(options: &Options) -> Vec<Self> {
        let wanted = |name: &str| options.servers.is_empty() || options.servers.iter().any(|one| one == name);
        let mut lanes = Vec::new();
        if wanted("courser") {
            lanes.push(Self::Courser);
        }
        for rival in Competitor::ALL.into_iter().filter(|rival| wanted(rival.name())) {
            match rival.program() {
                Some(program) => lanes.push(Self::Rival { rival, program }),
                None => {
                    eprintln!("skipped: {} is not installed (scripts/install.sh installs it)", rival.name());
                }
            }
        }
        lanes
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Courser => "courser",
            Self::Rival { rival, .. } => rival.name(),
        }
    }

    /// Name and version.
    pub(crate) fn description(&self) -> (&'static str, String) {
        let version = match self {
            Self::Courser => courser_version(),
            Self::Rival { rival, program } => rival.version(program),
        };
        (self.name(), version)
    }

    /// Starts it; it accepts connections when this returns.
    pub(crate) fn start(&self, setting: &Setting) -> Result<Server, String> {
        match self {
            Self::Courser => start_courser(setting).map(Server::Courser),
            Self::Rival { rival, .. } => rival.start(setting).map(Server::Rival).map_err(|e| e.to_string()),
        }
    }
}

/// A terminator that runs.
#[derive(Debug)]
pub(crate) enum Server {
    Courser(Courser),
    Rival(Running),
}

impl Server {
    pub(crate) fn process(&self) -> &Process {
        match self {
            Self::Courser(courser) => courser,
            Self::Rival(running) => &running.process,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Courser(courser) => courser.address(),
            Self::Rival(running) => running.address,
        }
    }
}

fn start_courser(setting: &Setting) -> Result<Courser, String> {
    let (version, suite) = match setting.version {
        Version::Tls12 => ("1.2", setting.tls12_suite()),
        Version::Tls13 => ("1.3", TLS13_SUITE),
    };
    let resume: &[_] = match setting.resume {
        Resume::Never => &["--tickets-per-handshake", "2"],
        Resume::Ticket => &["--no-session-ids"],
        Resume::SessionId => &["--no-tickets"],
    };
    let mut setup = Courser::setup(PROGRAM)
        .cert(&setting.certificate)
        .backend(setting.backend.to_string())
        .args(["--workers", "1", "--pin", "--log", "off", "--groups", "X25519"])
        .args(["--backlog", &setting.backlog.to_string(), "--tls-versions", version, "--suites", suite])
        .args(resume);
    if let Some(core) = setting.core {
        setup = setup.on_core(core);
    }
    setup.try_start()
}

fn courser_version() -> String {
    let output = Command::new(PROGRAM).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
