//! Network interfaces by name or number.

use std::fmt;
use std::fs;
use std::io;

use rustix::net::{AddressFamily, SocketType, netdevice, socket};

/// A network interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    pub(super) index: u32,
}

impl Interface {
    /// The interface with this name, or this number.
    ///
    /// # Errors
    /// When there is none; the error lists those there are.
    pub fn find(name_or_index: &str) -> Result<Self, NoInterface> {
        let missing = || NoInterface { asked: name_or_index.to_owned(), there_are: names() };
        look_up(name_or_index).map_err(|_| missing())
    }
}

fn look_up(asked: &str) -> io::Result<Interface> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    if let Ok(index) = netdevice::name_to_index(&socket, asked) {
        return Ok(Interface { name: asked.to_owned(), index });
    }
    let index = asked.parse().map_err(|_| io::ErrorKind::NotFound)?;
    Ok(Interface { name: netdevice::index_to_name(&socket, index)?, index })
}

/// The names of this network namespace's interfaces: the lines of proc_pid_net(5)'s `dev` with a colon.
fn names() -> Vec<String> {
    let table = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// This host has no such interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoInterface {
    asked: String,
    there_are: Vec<String>,
}

impl fmt::Display for NoInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, there_are } = self;
        write!(f, "this host has no network interface `{asked}`; there are: {}", there_are.join(", "))
    }
}

impl std::error::Error for NoInterface {}
