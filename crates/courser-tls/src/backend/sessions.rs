//! What one server of a pool can be resumed with.
//!
//! The library stores sessions by the server's name. Several servers have one name, and a ticket of one is of no use
//! with another: so each server has a store of its own, and in it the names that it is connected to by.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use courser_session::UnixSeconds;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Names that a server is known by, at most: clients choose them, where the name is theirs. A name takes some 70 KB at
/// most, where a server sends as long tickets as TLS allows, and mostly 10.
const MAX_NAMES: usize = 32;

/// Tickets of a name. Each is for one connection (the library has no copy of one; RFC 8446, appendix C.4), and a
/// connection brings at least one back, shortly after its handshake: so this is how many handshakes can be resumed at once.
const MAX_TICKETS: usize = 32;

/// The sessions of one server, the name used last at the end.
#[derive(Default)]
pub(crate) struct BackendSessions {
    names: Mutex<Vec<Named>>,
}

/// The sessions under one name.
struct Named {
    name: ServerName<'static>,
    /// When the certificates that the sessions rest on have to be verified again.
    verified_until: UnixSeconds,
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    /// Oldest first.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl BackendSessions {
    /// Nothing that rests on the certificates just verified is resumed after `end`.
    pub(super) fn verified_until(&self, name: &ServerName<'_>, end: UnixSeconds) {
        self.with(name.to_owned(), |named| named.verified_until = end);
    }

    /// Calls `change` with the sessions of a name, which is the last used from now on.
    fn with<T>(&self, name: ServerName<'static>, change: impl FnOnce(&mut Named) -> T) -> T {
        let mut names = self.lock();
        let known = names.iter().position(|named| named.name == name).map(|index| names.remove(index));
        let named = known.unwrap_or_else(|| Named {
            name,
            verified_until: UnixSeconds(u64::MAX),
            group: None,
            session: None,
            tickets: VecDeque::new(),
        });
        if names.len() == MAX_NAMES {
            names.remove(0);
        }
        names.push(named);
        change(names.last_mut().expect("one was pushed"))
    }

    /// As [`Self::with`], for a name that has sessions which may still be resumed.
    fn with_valid<T>(&self, name: &ServerName<'_>, find: impl FnOnce(&mut Named) -> Option<T>) -> Option<T> {
        let mut names = self.lock();
        let named = names.iter_mut().find(|named| named.name == *name)?;
        if named.verified_until <= now() {
            named.session = None;
            named.tickets.clear();
        }
        find(named)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Named>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for BackendSessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.with(name, |named| named.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.with_valid(name, |named| named.group)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.with(name, |named| named.session = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with_valid(name, |named| named.session.clone())
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.with_valid(name, |named| named.session.take());
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.with(name, |named| {
            if named.tickets.len() == MAX_TICKETS {
                named.tickets.pop_front();
            }
            named.tickets.push_back(ticket);
        });
    }

    /// The newest, which lives longest.
    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with_valid(name, |named| named.tickets.pop_back())
    }
}

/// They hold secrets.
impl fmt::Debug for BackendSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackendSessions {{ names: {} }}", self.lock().len())
    }
}

/// The library stamps sessions with the wall clock as well.
fn now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> ServerName<'static> {
        ServerName::try_from(format!("n{number}.example")).unwrap()
    }

    #[test]
    fn names_are_bounded_and_the_one_used_longest_ago_goes() {
        let sessions = BackendSessions::default();
        (0..MAX_NAMES).for_each(|number| sessions.set_kx_hint(name(number), NamedGroup::X25519));
        sessions.set_kx_hint(name(0), NamedGroup::secp256r1);
        sessions.set_kx_hint(name(MAX_NAMES), NamedGroup::X25519);
        assert_eq!(sessions.lock().len(), MAX_NAMES);
        assert_eq!(sessions.kx_hint(&name(0)), Some(NamedGroup::secp256r1));
        assert_eq!(sessions.kx_hint(&name(1)), None);
    }
}
