//! Sockets that the service manager holds for this service (`FDSTORE=1`), so that they, and the clients in their queues, outlive a
//! crash. Those that it has opened itself it holds anyway.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::os::fd::AsFd;

use courser_config::ListenAddress;
use courser_net::{ListenSocket, systemd};

use super::SocketName;

/// What names of ours begin with; those of units have no space in them.
const OURS: &str = "courser ";

/// The longest name that the service manager takes. An address that makes a longer one is not held.
const LONGEST: usize = 255;

/// A socket that the service manager holds, by this name.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) queue: u64,
    pub(super) name: String,
}

impl Stored {
    /// Has it held no more.
    pub(super) fn forget(&self) {
        systemd::forget(&self.name);
    }
}

/// What it holds altogether.
pub(super) struct Held {
    by_queue: HashMap<u64, String>,
    names: HashSet<String>,
}

/// Whether the name of a socket says that this service had it.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

/// The name of a socket that was held.
pub(super) fn name(text: &str, socket: &ListenSocket) -> Option<SocketName> {
    let (named, index) = text.strip_prefix(OURS)?.rsplit_once(' ')?;
    let (listener, listen) = named.split_once(' ').unwrap_or(("", named));
    let (listener, listen, address) = (decoded(listener)?, decoded(listen)?, socket.address().to_string());
    let (index, stored) = (index.parse().ok()?, Some(text.to_owned()));
    Some(SocketName { listener, listen, index, address, stored })
}

impl FromIterator<Stored> for Held {
    fn from_iter<I: IntoIterator<Item = Stored>>(stored: I) -> Self {
        let by_queue: HashMap<_, _> =
            stored.into_iter().map(|Stored { queue, name }| (queue, name)).collect();
        let names = by_queue.values().cloned().collect();
        Self { by_queue, names }
    }
}

impl Held {
    /// Has the sockets of a listener's address held, each queue once, and returns them. One that is held already keeps its name:
    /// the service manager would give it no other one.
    pub(super) fn store(
        &mut self,
        listener: &str,
        address: &ListenAddress,
        groups: &[Vec<ListenSocket>],
    ) -> Vec<Stored> {
        let mut stored = Vec::<Stored>::new();
        if let ListenAddress::Systemd(_) = address {
            return stored;
        }
        let (address, mut index) = (address.to_string(), 0);
        for socket in groups.iter().flatten() {
            let Ok(queue) = socket.queue() else { continue };
            if stored.iter().any(|stored| stored.queue == queue) {
                continue;
            }
            let known = self.by_queue.get(&queue).cloned();
            let Some(name) = known.or_else(|| self.free_name(listener, &address, &mut index)) else {
                continue;
            };
            systemd::store(&name, socket.as_fd());
            self.names.insert(name.clone());
            stored.push(Stored { queue, name });
        }
        stored
    }

    /// The first name that no socket has, from `index` on. One that has gone may have left a gap.
    fn free_name(&self, listener: &str, address: &str, index: &mut usize) -> Option<String> {
        loop {
            let name = stored_name(listener, address, *index)?;
            *index += 1;
            if !self.names.contains(&name) {
                return Some(name);
            }
        }
    }
}

/// Of port 0 several listeners may have one address each: their sockets bear the name of the listener too.
fn stored_name(listener: &str, address: &str, index: usize) -> Option<String> {
    let is_any_port = address.ends_with(":0") && !listener.is_empty();
    let listener = if is_any_port { encoded(listener) + " " } else { String::new() };
    let name = format!("{OURS}{listener}{} {index}", encoded(address));
    (name.len() <= LONGEST).then_some(name)
}

/// Without what a name must not have, and without spaces.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b':' | b'%' | 0..=b' ' | 0x7f.. => {
                let _ = write!(encoded, "%{byte:02x}");
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_name_and_back() {
        for text in ["*:443", "[2001:db8::1]:8443", "unix:/run/a b%/\u{e9}.sock"] {
            let name = encoded(text);
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'), "{name}");
            assert_eq!(decoded(&name).as_deref(), Some(text));
        }
        assert_eq!(decoded("%4"), None);
        assert_eq!(decoded("%zz"), None);
    }
}
