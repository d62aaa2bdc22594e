//! The listening sockets of the process, by configured address: which are open, and what workers get for a generation.

mod store;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use courser_config::{HostConfig, ListenAddress};
use courser_net::{Address, ListenSocket, systemd};
use courser_proxy::{Command, Listeners, Taken};
use courser_telemetry::event::{Level, log};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::generation::{BuiltListener, Generation, liveness};
use store::{Held, Stored};

/// Time for every worker to take a generation over: an iteration of its event loop, mostly.
pub(crate) const TAKE_OVER: Duration = Duration::from_secs(5);

/// What a listening socket is called between processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SocketName {
    /// Name of the listener.
    pub(crate) listener: String,
    /// Its address as configured: `*:443`, `systemd:web`.
    pub(crate) listen: String,
    /// Among those of this listener and address. Compared before the socket's own: of an address with port 0 that stands twice,
    /// the first gets back what the first had.
    pub(crate) index: usize,
    /// The socket's own: `[::]:443`.
    pub(crate) address: String,
    /// What the service manager calls it, where that holds it. It keeps that name, whoever serves at the socket.
    #[serde(default)]
    pub(crate) stored: Option<String>,
}

impl SocketName {
    /// What a program of any version has of it.
    pub(crate) fn place(&self) -> (&str, &str, usize, &str) {
        (&self.listener, &self.listen, self.index, &self.address)
    }
}

/// A socket from another process, with the name that it had there.
pub(crate) type Named = (SocketName, ListenSocket);

pub(crate) struct Sockets {
    workers: usize,
    /// From systemd, with their names; taken by the first address that names them.
    inherited: Vec<(String, OwnedFd)>,
    /// From the process before this one; taken by the listener and address that had them.
    handed_over: Vec<Named>,
    /// The sockets that workers have.
    open: Vec<Open>,
}

/// The sockets of one configured address.
#[derive(Clone)]
struct Open {
    listener: String,
    listen: ListenAddress,
    addresses: Vec<Address>,
    /// Those that the service manager holds.
    stored: Vec<Stored>,
}

impl Sockets {
    /// With those of the process before this one, be it that it hands them over, or that the service manager has held them
    /// for it, and with those that the service manager has opened.
    pub(crate) fn new(workers: usize, mut handed_over: Vec<Named>) -> Result<Self, Failure> {
        let failed = |error| Failure::runtime("cannot take systemd's sockets", error);
        let mut inherited = systemd::inherited().map_err(failed)?;
        let stored = inherited.extract_if(.., |(name, _)| store::is_ours(name)).collect::<Vec<_>>();
        for (name, socket) in stored {
            let adopted = ListenSocket::adopt(socket).map_err(failed)?;
            handed_over.extend(store::name(&name, &adopted).map(|name| (name, adopted)));
        }
        Ok(Self { workers, inherited, handed_over, open: Vec::new() })
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
        let (mut open, mut listeners) = (Vec::new(), Listeners::new());
        let mut opened: Vec<Vec<ListenSocket>> = (0..self.workers).map(|_| Vec::new()).collect();
        let mut before = self.open.clone();
        let mut held = self.held();
        for built in &generation.listeners {
            for address in &built.settings.listen {
                let name = &built.settings.name;
                let (addresses, stored) = match take_open(&mut before, name, address, generation) {
                    Some(open) => (open.addresses, open.stored),
                    None => {
                        let groups = self.open(address, built, generation)?;
                        groups.iter().try_for_each(|group| watch_peers(group, &built.settings.default))?;
                        let stored = held.store(name, address, &groups);
                        let addresses = distribute(groups, &mut opened);
                        addresses.iter().for_each(|address| self.log(address, built));
                        (addresses, stored)
                    }
                };
                for address in &addresses {
                    listeners.insert(address.clone(), Arc::clone(&built.listener));
                }
                let listener = built.settings.name.clone();
                open.push(Open { listener, listen: address.clone(), addresses, stored });
            }
        }
        for gone in before {
            gone.stored.iter().for_each(Stored::forget);
        }
        self.open = open;
        let listeners = Arc::new(listeners);
        let command =
            |opened| Command::Swap { listeners: Arc::clone(&listeners), opened, taken: taken.clone() };
        Ok(opened.into_iter().map(command).collect())
    }

    /// Closes what was handed over and no listener has: nobody holds it for this service any more.
    pub(crate) fn forget_others(&mut self) {
        for name in self.handed_over.drain(..).filter_map(|(name, _)| name.stored) {
            systemd::forget(&name);
        }
    }

    /// The addresses of all sockets.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.open.iter().flat_map(|open| &open.addresses)
    }

    /// The names of what workers have, for another process. Of several descriptors of one queue the first remains.
    pub(crate) fn named(&self, sockets: Vec<ListenSocket>) -> io::Result<Vec<Named>> {
        let mut queues = HashSet::new();
        let mut of_open: Vec<_> = self.open.iter().map(|open| (open, Vec::new())).collect();
        for socket in sockets {
            let queue = socket.queue()?;
            let of_open = of_open.iter_mut().find(|(open, _)| open.addresses.contains(socket.address()));
            if let Some((_, of_open)) = of_open.filter(|_| queues.insert(queue)) {
                of_open.push((queue, socket));
            }
        }
        let mut counts = HashMap::<_, usize>::new();
        let mut named = Vec::new();
        for (open, sockets) in of_open {
            for (queue, socket) in sockets {
                let (listener, listen) = (open.listener.clone(), open.listen.to_string());
                let count = counts.entry((&open.listener, &open.listen)).or_default();
                let index = std::mem::replace(count, *count + 1);
                let address = socket.address().to_string();
                let stored = open.stored.iter().find(|stored| stored.queue == queue);
                let stored = stored.map(|stored| stored.name.clone());
                named.push((SocketName { listener, listen, index, address, stored }, socket));
            }
        }
        Ok(named)
    }

    /// What the service manager holds.
    fn held(&self) -> Held {
        let open = self.open.iter().flat_map(|open| &open.stored).cloned();
        let handed_over = self.handed_over.iter().filter_map(|(name, socket)| {
            Some(Stored { queue: socket.queue().ok()?, name: name.stored.clone()? })
        });
        open.chain(handed_over).collect()
    }

    fn log(&self, address: &Address, built: &BuiltListener) {
        let (name, workers) = (&built.settings.name, self.workers);
        log(Level::Info, format_args!("listening on {address} (listener {name}, workers: {workers})"));
        built.log();
    }

    /// The sockets of an address, one for each worker; for `systemd` those of every socket that was passed. What the process
    /// before this one had goes before what systemd passed to it.
    fn open(
        &mut self,
        address: &ListenAddress,
        built: &BuiltListener,
        generation: &Generation,
    ) -> Result<Vec<Vec<ListenSocket>>, Failure> {
        let backlog = built.settings.backlog;
        let failed = |error| Failure::runtime(format_args!("cannot listen on {address}"), error);
        if let Some(groups) = self.take_handed_over(address, built, generation) {
            return groups.map_err(failed);
        }
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
        opened.map_err(failed)
    }

    /// The sockets that another process had for an address, by their own addresses: with the same listener, or with one that
    /// has another name now. Two with one port 0 have a socket each.
    fn take_handed_over(
        &mut self,
        address: &ListenAddress,
        built: &BuiltListener,
        generation: &Generation,
    ) -> Option<io::Result<Vec<Vec<ListenSocket>>>> {
        let listen = address.to_string();
        let is_systemd = matches!(address, ListenAddress::Systemd(_));
        self.handed_over.sort_by(|(one, _), (other, _)| one.cmp(other));
        let names = || self.handed_over.iter().map(|(name, _)| name).filter(|name| name.listen == listen);
        let own = names().find(|name| name.listener == built.settings.name);
        let free = || names().find(|name| !listens(generation, &name.listener, address));
        let first = own.or_else(free)?.clone();
        let is_taken = |(name, _): &mut Named| {
            (&name.listener, &name.listen) == (&first.listener, &first.listen)
                && (is_systemd || name.address == first.address)
        };
        let taken: Vec<_> = self.handed_over.extract_if(.., is_taken).collect();
        let mut groups = HashMap::<Address, Vec<ListenSocket>>::new();
        for (_, socket) in taken {
            groups.entry(socket.address().clone()).or_default().push(socket);
        }
        let is_own = matches!(address, ListenAddress::Any { .. } | ListenAddress::Ip(_));
        let dual = matches!(address, ListenAddress::Any { .. });
        let complete = |mut group: Vec<ListenSocket>| {
            if is_systemd {
                group = group.into_iter().map(ListenSocket::foreign).collect();
            } else {
                group.iter().try_for_each(|socket| socket.set_backlog(built.settings.backlog))?;
            }
            let missing = self.workers.saturating_sub(group.len());
            if is_own && missing > 0 {
                // A port that only root may open is shared instead.
                let more = ListenSocket::open(group[0].address(), dual, built.settings.backlog, missing);
                group.extend(more.unwrap_or_default());
            }
            for index in 0..self.workers.saturating_sub(group.len()) {
                group.push(group[index].share()?);
            }
            Ok(group)
        };
        Some(groups.into_values().map(complete).collect())
    }

    /// Takes the sockets that systemd passed under `name`, or all that are left.
    fn adopt(&mut self, name: Option<&str>) -> io::Result<Vec<Vec<ListenSocket>>> {
        let is_named = |(known, _): &mut (String, OwnedFd)| name.is_none_or(|name| name == known);
        let adopted: Vec<_> = self.inherited.extract_if(.., is_named).collect();
        if adopted.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "systemd has passed no such socket"));
        }
        let shared = |(_, fd)| {
            let mut sockets = vec![ListenSocket::adopt(fd)?.foreign()];
            while sockets.len() < self.workers {
                sockets.push(sockets[0].share()?);
            }
            Ok(sockets)
        };
        adopted.into_iter().map(shared).collect()
    }
}

/// The sockets that are open for an address: those of this listener, or else of one that has another name now.
fn take_open(
    open: &mut Vec<Open>,
    listener: &str,
    listen: &ListenAddress,
    generation: &Generation,
) -> Option<Open> {
    let same = |open: &Open| open.listen == *listen;
    let own = open.iter().position(|open| same(open) && open.listener == listener);
    let free = || open.iter().position(|open| same(open) && !listens(generation, &open.listener, listen));
    Some(open.remove(own.or_else(free)?))
}

/// Whether a listener of this name has this address: with port 0 several may have the same.
fn listens(generation: &Generation, listener: &str, listen: &ListenAddress) -> bool {
    let mut listeners = generation.listeners.iter().map(|built| &built.settings);
    listeners.any(|settings| settings.name == listener && settings.listen.contains(listen))
}

/// Gives the workers the sockets of each group in turn: each has one at least. Returns the addresses of the groups.
fn distribute(groups: Vec<Vec<ListenSocket>>, workers: &mut [Vec<ListenSocket>]) -> Vec<Address> {
    let addresses =
        groups.iter().filter_map(|group| Some(group.first()?.address().clone())).collect::<Vec<_>>();
    for (number, socket) in groups.into_iter().flat_map(|group| group.into_iter().enumerate()) {
        workers[number % workers.len()].push(socket);
    }
    addresses
}

/// Accepted sockets inherit it from the listening one, so that no connection pays for it.
fn watch_peers(opened: &[ListenSocket], host: &HostConfig) -> Result<(), Failure> {
    let set = |socket: &ListenSocket| socket.set_liveness(&liveness(host));
    let failed = |error| Failure::runtime("cannot set the keepalive of a listening socket", error);
    opened.iter().try_for_each(set).map_err(failed)
}
