//! What is read beside the load, at both ends of each window: the server, the origin, ourselves, the cores.

use courser_machine::quota::{CpuLimit, LimitedGroup, Throttling};
use courser_machine::usage::{Cores, Server, UsageSample};

use crate::error::Error;
use courser_load::spec::ServerSpec;

/// Whoever is read.
pub struct Reader {
    server: Option<Server>,
    own: Option<Server>,
    origin: Option<Server>,
    limited: Option<LimitedGroup>,
}

/// One reading. What could not be read is missing.
pub struct Reading {
    /// The server's processes.
    pub server: Option<UsageSample>,
    /// This process.
    pub own: Option<UsageSample>,
    /// The origin's processes, where it is known.
    pub origin: Option<UsageSample>,
    /// All cores of the machine.
    pub cores: Option<Cores>,
    /// How often the server's limit on processor time was met so far, where it has one.
    pub throttling: Option<Throttling>,
    /// Why the server could not be read, if it was to be.
    pub trouble: Option<String>,
}

/// What is known of the server before the run.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Its control group.
    pub cgroup: Option<String>,
    /// CPUs that it may use.
    pub cpus: Vec<usize>,
    /// CPUs that the origin may use.
    pub origin_cpus: Vec<usize>,
    /// Its limit on processor time, where it has one.
    pub limit: Option<CpuLimit>,
}

impl Reader {
    /// Finds the processes.
    pub fn new(spec: &ServerSpec) -> Result<(Self, Watched), Error> {
        let server = match (spec.pid, &spec.cgroup) {
            (Some(pid), _) => Some(Server::from_pid(pid).map_err(Error::input)?),
            (None, Some(path)) => Some(Server::from_cgroup(path).map_err(Error::input)?),
            (None, None) => None,
        };
        let origin = spec.origin_pid.map(Server::from_pid).transpose().map_err(Error::input)?;
        let own = Server::from_pid(std::process::id()).ok();
        let limited = spec.pid.and_then(LimitedGroup::of_process);
        let cpus = |server: &Option<Server>| server.as_ref().and_then(Server::cpus).unwrap_or_default();
        let watched = Watched {
            cgroup: spec.cgroup.as_ref().map(|path| path.display().to_string()),
            cpus: spec.cpus.clone().unwrap_or_else(|| cpus(&server)),
            origin_cpus: cpus(&origin),
            limit: limited.as_ref().and_then(LimitedGroup::limit),
        };
        Ok((Self { server, own, origin, limited }, watched))
    }

    /// Reads all of them.
    pub fn read(&mut self) -> Reading {
        let server = self.server.as_mut().map(Server::sample);
        let trouble = server.as_ref().and_then(|sample| sample.as_ref().err()).map(ToString::to_string);
        let sample = |server: &mut Option<Server>| server.as_mut().and_then(|server| server.sample().ok());
        Reading {
            server: server.and_then(Result::ok),
            own: sample(&mut self.own),
            origin: sample(&mut self.origin),
            cores: Cores::read().ok(),
            throttling: self.limited.as_ref().and_then(LimitedGroup::throttling),
            trouble,
        }
    }
}
