//! Sockets that the service manager holds for this service (`FDSTORE=1`), so that they, and the clients in their queues, outlive a
//! crash. Those that it has opened itself it holds anyway.

use std::fmt::Write as _;
use std::os::fd::AsFd;

use courser_config::ListenAddress;
use courser_net::{ListenSocket, systemd};

use super::SocketName;

/// What names of ours begin with; those of units have no space in them.
const OURS: &str = "courser ";

/// The longest name that the service manager takes. An address that makes a longer one is not held.
const LONGEST: usize = 255;

/// Whether the name of a socket says that this service had it.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

/// The name of a socket that was held.
pub(super) fn name(text: &str, socket: &ListenSocket) -> Option<SocketName> {
    let (named, index) = text.strip_prefix(OURS)?.rsplit_once(' ')?;
    let (listener, listen) = named.split_once(' ').unwrap_or(("", named));
    let (listener, listen, address) = (decoded(listener)?, decoded(listen)?, socket.address().to_string());
    Some(SocketName { listener, listen, address, index: index.parse().ok()? })
}

/// Has the sockets of a listener's address held, each queue once: one that is held already stays as it is. Of an address with
/// port 0 that stands twice, the second has sockets of its own, whose indices begin at `first`. Returns their names.
pub(super) fn store(
    listener: &str,
    address: &ListenAddress,
    first: usize,
    groups: &[Vec<ListenSocket>],
) -> Vec<String> {
    let (mut queues, mut names) = (Vec::new(), Vec::new());
    if let ListenAddress::Systemd(_) = address {
        return names;
    }
    for socket in groups.iter().flatten() {
        let Ok(queue) = socket.queue() else { continue };
        let name = stored_name(listener, &address.to_string(), first + queues.len());
        let Some(name) = name.filter(|_| !queues.contains(&queue)) else { continue };
        systemd::store(&name, socket.as_fd());
        queues.push(queue);
        names.push(name);
    }
    names
}

/// Has this socket held no more.
pub(super) fn forget(socket: &SocketName) {
    let SocketName { listener, listen, index, .. } = socket;
    stored_name(listener, listen, *index).into_iter().for_each(|name| systemd::forget(&name));
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
