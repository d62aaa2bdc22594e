//! Who is measured: courser and the rivals that are installed.

use std::{
    iter::once,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use courser_testkit::{
    Courser, Process,
    competitor::{Competitor, Running, Setting},
};

use crate::{case::Case, options::Options};

/// Its name on the command line and in the table.
pub(crate) const COURSER: &str = "courser";

const PROGRAM: &str = env!("CARGO_BIN_EXE_courser");

/// A build of a terminator that can be started.
#[derive(Debug)]
pub(crate) struct Terminator {
    name: String,
    program: PathBuf,
    /// Nothing for courser.
    rival: Option<Competitor>,
}

impl Terminator {
    /// Those that are wanted and installed, courser first, then those given by path; says who is missing.
    pub(crate) fn available(options: &Options) -> Vec<Self> {
        let wanted = |name: &str| options.servers.is_empty() || options.servers.iter().any(|one| one == name);
        let mut lanes = Vec::new();
        for rival in once(None).chain(Competitor::ALL.map(Some)) {
            let name = rival.map_or(COURSER, Competitor::name);
            if !wanted(name) {
                continue;
            }
            match rival.map_or(Some(PROGRAM.into()), Competitor::program) {
                Some(program) => lanes.push(Self { name: name.to_owned(), program, rival }),
                None => eprintln!("skipped: {name} is not installed (scripts/install.sh installs it)"),
            }
        }
        for (number, (name, program)) in (2..).zip(&options.builds) {
            let rival = Competitor::ALL.into_iter().find(|rival| rival.name() == *name);
            lanes.push(Self { name: format!("{name}-{number}"), program: program.into(), rival });
        }
        lanes
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Name and version.
    pub(crate) fn description(&self) -> (String, String) {
        let version = match self.rival {
            None => courser_version(&self.program),
            Some(rival) => rival.version(&self.program),
        };
        (self.name.clone(), version)
    }

    /// Starts it; it accepts connections when this returns.
    pub(crate) fn start(&self, case: Case, setting: &Setting) -> Result<Server, String> {
        match self.rival {
            None => start_courser(&self.program, case, setting).map(Server::Courser),
            Some(rival) => {
                rival.start_program(&self.program, setting).map(Server::Rival).map_err(|e| e.to_string())
            }
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

fn start_courser(program: &Path, case: Case, setting: &Setting) -> Result<Courser, String> {
    let mut setup = Courser::setup(program)
        .cert(&setting.certificate)
        .backend(setting.backend.to_string())
        .args(["--workers", "1", "--pin", "--log", "off", "--backlog", &setting.backlog.to_string()])
        .args(case.flags());
    if let Some(core) = setting.core {
        setup = setup.on_core(core);
    }
    setup.try_start()
}

fn courser_version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
