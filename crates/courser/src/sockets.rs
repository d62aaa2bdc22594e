//! The listening sockets of the process, by configured address: which are open, and what workers get for a generation.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use courser_config::{HostConfig, ListenAddress};
use courser_net::{Address, ListenSocket, systemd};
use courser_proxy::{Command, Listeners, Taken};
use courser_telemetry::event::{Level, log};

use crate::exit::Failure;
use crate::generation::{BuiltListener, Generation, liveness};

pub(crate) struct Sockets {
    workers: usize,
    /// From systemd, with their names; taken by the first address that names them.
    inherited: Vec<(String, OwnedFd)>,
    /// The addresses of the sockets that workers have.
    open: HashMap<ListenAddress, Vec<Address>>,
}

impl Sockets {
    pub(crate) fn new(workers: usize) -> Result<Self, Failure> {
        let inherited =
            systemd::inherited().map_err(|error| Failure::runtime("cannot take systemd's sockets", error))?;
        Ok(Self { workers, inherited, open: HashMap::new() })
    }

    /// Opens the addresses of a generation that are not open yet and retains those that are. Returns the command that
    /// hands the generation over, one for each worker; a worker closes the sockets that the generation lacks, and drops
    /// its copy of `taken` when it has taken the generation over. After a
    /// failure the sockets are as before.
    pub(crate) fn hand_over(
        &mut self,
        generation: &Generation,
        taken: &Taken,
    ) -> Result<Vec<Command>, Failure> {
        let (mut open, mut listeners) = (HashMap::new(), Listeners::new());
        let mut opened: Vec<Vec<ListenSocket>> = (0..self.workers).map(|_| Vec::new()).collect();
        for built in &generation.listeners {
            for address in &built.settings.listen {
                let addresses = match self.open.get(address) {
                    Some(addresses) => addresses.clone(),
                    None => {
                        let groups = self.open(address, built.settings.backlog)?;
                        groups.iter().try_for_each(|group| watch_peers(group, &built.settings.default))?;
                        let addresses = distribute(groups, &mut opened);
                        addresses.iter().for_each(|address| self.log(address, built));
                        addresses
                    }
                };
                for address in &addresses {
                    listeners.insert(address.clone(), Arc::clone(&built.listener));
                }
                open.insert(address.clone(), addresses);
            }
        }
        self.open = open;
        let listeners = Arc::new(listeners);
        let command =
            |opened| Command::Swap { listeners: Arc::clone(&listeners), opened, taken: taken.clone() };
        Ok(opened.into_iter().map(command).collect())
    }

    fn log(&self, address: &Address, built: &BuiltListener) {
        let (name, workers) = (&built.settings.name, self.workers);
        log(Level::Info, format_args!("listening on {address} (listener {name}, workers: {workers})"));
        built.log();
    }

    /// The sockets of an address, one for each worker; for `systemd` those of every socket that was passed.
    fn open(&mut self, address: &ListenAddress, backlog: u32) -> Result<Vec<Vec<ListenSocket>>, Failure> {
        let open = |address: &Address, dual| {
            ListenSocket::open(address, dual, backlog, self.workers).map(|opened| vec![opened])
        };
        let opened = match address {
            ListenAddress::Any { port } => {
                let v6 = open(&Address::Ip(SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port))), true);
                v6.or_else(|_| open(&Address::Ip(SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port))), false))
            }
            ListenAddress::Ip(ip) => open(&Address::Ip(*ip), false),
            ListenAddress::Unix(path) => open(&Address::Unix(path.clone()), false),
            ListenAddress::Abstract(name) => open(&Address::Abstract(name.clone()), false),
            ListenAddress::Systemd(name) => self.adopt(name.as_deref()),
        };
        opened.map_err(|error| Failure::runtime(format_args!("cannot listen on {address}"), error))
    }

    /// Takes the sockets that systemd passed under `name`, or all that are left.
    fn adopt(&mut self, name: Option<&str>) -> io::Result<Vec<Vec<ListenSocket>>> {
        let is_named = |(known, _): &mut (String, OwnedFd)| name.is_none_or(|name| name == known);
        let adopted: Vec<_> = self.inherited.extract_if(.., is_named).collect();
        if adopted.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "systemd has passed no such socket"));
        }
        adopted.into_iter().map(|(_, fd)| ListenSocket::adopt(fd, self.workers)).collect()
    }
}

/// Gives each worker its socket of each group. Returns the addresses of the groups.
fn distribute(groups: Vec<Vec<ListenSocket>>, workers: &mut [Vec<ListenSocket>]) -> Vec<Address> {
    let addresses =
        groups.iter().filter_map(|group| Some(group.first()?.address().clone())).collect::<Vec<_>>();
    for (worker, socket) in groups.into_iter().flat_map(|group| group.into_iter().enumerate()) {
        workers[worker].push(socket);
    }
    addresses
}

/// Accepted sockets inherit it from the listening one, so that no connection pays for it.
fn watch_peers(opened: &[ListenSocket], host: &HostConfig) -> Result<(), Failure> {
    let set = |socket: &ListenSocket| socket.set_liveness(&liveness(host));
    let failed = |error| Failure::runtime("cannot set the keepalive of a listening socket", error);
    opened.iter().try_for_each(set).map_err(failed)
}
