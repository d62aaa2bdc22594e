//! The new process: receives what the one before it has, builds, and says when it is ready.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, io};

use courser_net::ListenSocket;
use courser_net::channel::Channel;
use courser_session::Cache;
use courser_telemetry::event::{Level, log};
use rustix::process::getppid;

use super::message::{self, Message, TakenOver};
use super::{Memory, OldProcess, PREDECESSOR, PROTOCOL, SILENCE};
use crate::exit::Failure;
use crate::sockets::Named;

/// What this process was given, and the way to the one before it.
pub(crate) struct Succession {
    channel: Arc<Channel>,
    pub(crate) sockets: Vec<Named>,
    pub(crate) memory: Option<Memory>,
    fleet: Option<(std::net::SocketAddr, Vec<OwnedFd>)>,
    control: Option<(PathBuf, OwnedFd)>,
    /// With their addresses as configured.
    admin: Vec<(String, OwnedFd)>,
    kept: TakenOver,
    /// Those that already drained, and the ways to them.
    old: Predecessors,
}

/// A process that drains, and the way to it.
pub(crate) type Predecessors = Vec<(OldProcess, Arc<Channel>)>;

/// A process that has gone needs no reason.
fn fail(channel: &Channel, failure: &Failure) {
    let why = failure.text(false);
    let _ = message::send(channel, &Message::Failed { exit_code: failure.exit_code(), why }, &[]);
}

impl Succession {
    /// Steps 1 to 4. `None` where this process was not started as a successor.
    pub(crate) fn begin() -> Result<Option<Self>, Failure> {
        let parent = getppid().map(rustix::process::Pid::as_raw_pid);
        let named = env::var(PREDECESSOR).ok().and_then(|pid| pid.parse::<i32>().ok());
        // A variable that was passed on by somebody else says nothing.
        if named.is_none() || named != parent {
            return Ok(None);
        }
        let failed = |error: &dyn std::fmt::Display| Failure::runtime("cannot take over", error);
        let channel = Channel::from_stdin().map_err(|error| failed(&error))?;
        let (peer, limit) = (channel.peer(), channel.set_timeout(SILENCE));
        if peer.and_then(|peer| limit.map(|()| Some(peer))).map_err(|error| failed(&error))? != parent {
            return Err(failed(&"the channel is of another process"));
        }
        let mut this = Self {
            channel: Arc::new(channel),
            sockets: Vec::new(),
            memory: None,
            fleet: None,
            control: None,
            admin: Vec::new(),
            kept: TakenOver::default(),
            old: Vec::new(),
        };
        let received = this.receive_all().map_err(|error| failed(&error));
        received.inspect_err(|failure| fail(&this.channel, failure)).map(|()| Some(this))
    }

    fn receive_all(&mut self) -> io::Result<()> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.send(&Message::Hello { protocol: PROTOCOL, version })?;
        while self.receive_sockets()? {}
        let names = self.sockets.iter().map(|(name, _)| name.clone()).collect();
        self.send(&Message::Sockets { names, more: false })?;
        let (Message::Memory, descriptors) = self.next()? else { return Err(nonsense()) };
        let file = descriptors.into_iter().next().ok_or_else(nonsense)?;
        self.memory = Some(Memory::open(file)?);
        self.send(&Message::Memory)?;
        let (Message::Process(process), descriptors) = self.next()? else { return Err(nonsense()) };
        self.take_process(process, descriptors)?;
        self.send(&Message::Process(message::Process::default()))
    }

    /// Returns whether more of them follow.
    fn receive_sockets(&mut self) -> io::Result<bool> {
        let (Message::Sockets { names, more }, descriptors) = self.next()? else { return Err(nonsense()) };
        if names.len() != descriptors.len() {
            return Err(nonsense());
        }
        for (name, descriptor) in names.into_iter().zip(descriptors) {
            // Its first act takes any filter off.
            let socket = ListenSocket::adopt(descriptor)?;
            if socket.address().to_string() != name.address {
                return Err(nonsense());
            }
            self.sockets.push((name, socket));
        }
        Ok(more)
    }

    fn take_process(&mut self, process: message::Process, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let mut descriptors = descriptors.into_iter();
        let mut take = || descriptors.next().ok_or_else(nonsense);
        if let Some((listen, count)) = process.fleet {
            self.fleet = Some((listen, (0..count).map(|_| take()).collect::<io::Result<_>>()?));
        }
        self.control = process.control.map(|path| Ok::<_, io::Error>((path, take()?))).transpose()?;
        for address in process.admin {
            self.admin.push((address, take()?));
        }
        for old in process.old {
            self.old.push((old, Arc::new(Channel::from_descriptor(take()?))));
        }
        Ok(())
    }

    fn send(&self, message: &Message) -> io::Result<()> {
        message::send(&self.channel, message, &[])
    }

    fn next(&self) -> io::Result<(Message, Vec<OwnedFd>)> {
        message::receive(&self.channel)?.ok_or_else(|| io::Error::other("the running process has ended"))
    }

    /// Says to the process before this one why this one fails.
    pub(crate) fn report(&self, failure: &Failure) {
        fail(&self.channel, failure);
    }

    /// The sockets of the fleet, where they are those of this address.
    pub(crate) fn take_fleet(&mut self, listen: std::net::SocketAddr) -> Vec<OwnedFd> {
        self.fleet
            .take()
            .filter(|(known, _)| *known == listen)
            .map(|(_, sockets)| sockets)
            .unwrap_or_default()
    }

    /// The control socket, where it is the one at this path.
    pub(crate) fn take_control(&mut self, path: &Path) -> Option<OwnedFd> {
        let path = std::path::absolute(path).ok()?;
        let taken = self.control.take().filter(|(known, _)| *known == path).map(|(_, socket)| socket);
        self.kept.control = taken.is_some();
        taken
    }

    /// The sockets for operators at these addresses.
    pub(crate) fn take_admin(&mut self, listen: &[String]) -> Vec<(String, OwnedFd)> {
        let taken: Vec<_> = self.admin.drain(..).filter(|(address, _)| listen.contains(address)).collect();
        self.kept.admin = taken.iter().map(|(address, _)| address.clone()).collect();
        taken
    }

    /// Steps 5 and 6: everything is built. `serve` has the workers accept. Where the process before this one has ended
    /// meanwhile, this one serves all the same. Returns the processes that drain now.
    pub(crate) fn take_over(
        &mut self,
        sockets: Vec<String>,
        cache: Option<&Cache>,
        serve: impl FnOnce(),
    ) -> Result<Predecessors, Failure> {
        let failed = |error| Failure::runtime("cannot take over", error);
        let (channel, kept) = (&self.channel, self.kept.clone());
        let mut old = std::mem::take(&mut self.old);
        message::send(channel, &Message::Ready(TakenOver { sockets, ..kept }), &[]).map_err(failed)?;
        match message::receive(channel).map_err(failed)? {
            Some((Message::Memory, descriptors)) => {
                let changes = descriptors.into_iter().next().ok_or_else(nonsense).and_then(Memory::open);
                let changes = changes.map_err(failed)?;
                cache.map_or(Ok(0), |cache| changes.replay(cache)).map_err(failed)?;
            }
            Some(_) => return Err(failed(nonsense())),
            None => log(Level::Warning, "upgrade: the running process has ended: this one serves"),
        }
        serve();
        if message::send(channel, &Message::Serves, &[]).is_err() {
            return Ok(old);
        }
        // It has stopped speaking for the fleet; or it has ended, or hangs, and this process must not wait for it.
        if let Ok(Some((Message::Drains(process), _))) = message::receive(channel) {
            old.push((process, Arc::clone(channel)));
        }
        Ok(old)
    }
}

fn nonsense() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the running process does not keep to the protocol of upgrades",
    )
}
