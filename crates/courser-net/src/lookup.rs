//! Addresses of a name, by the system's resolver. Blocks for as long as the resolver likes: not for workers.

use std::ffi::{CStr, CString};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::{io, ptr};

/// The answer of the resolver for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Its addresses, the preferred one first (RFC 6724).
    Found(Vec<SocketAddr>),
    /// The name does not exist, or has no address (EAI_NONAME, EAI_NODATA). The resolver knows.
    NoSuchName,
    /// The resolver does not know: it did not answer, or failed. With the reason.
    Failed(String),
}

/// Looks `host` up as `getaddrinfo(3)` does: `/etc/hosts`, search domains and name services as configured. The
/// standard library does the same, but does not distinguish a denial from a failure.
pub fn look_up(host: &str, port: u16) -> Lookup {
    let Ok(name) = CString::new(host) else { return Lookup::NoSuchName };
    match Answer::of(&name) {
        Ok(answer) => Lookup::Found(answer.addresses(port)),
        Err(libc::EAI_NONAME | libc::EAI_NODATA) => Lookup::NoSuchName,
        Err(libc::EAI_SYSTEM) => Lookup::Failed(io::Error::last_os_error().to_string()),
        Err(code) => Lookup::Failed(reason(code)),
    }
}

/// The resolver's list, freed on drop.
struct Answer(*mut libc::addrinfo);

impl Answer {
    fn of(name: &CStr) -> Result<Self, libc::c_int> {
        let hints = libc::addrinfo {
            ai_flags: 0,
            ai_family: libc::AF_UNSPEC,
            // Else each address comes once for each kind of socket.
            ai_socktype: libc::SOCK_STREAM,
            ai_protocol: 0,
            ai_addrlen: 0,
            ai_addr: ptr::null_mut(),
            ai_canonname: ptr::null_mut(),
            ai_next: ptr::null_mut(),
        };
        let mut list = ptr::null_mut();
        #[expect(unsafe_code, reason = "none of the libraries here gives the resolver's error code")]
        // SAFETY: `name` is a C string and `hints` a whole `addrinfo` with the fields that hints may set, both alive for
        // the call; `list` is written on success alone, and then belongs to `Answer`, which frees it once.
        let code = unsafe { libc::getaddrinfo(name.as_ptr(), ptr::null(), &raw const hints, &raw mut list) };
        if code == 0 { Ok(Self(list)) } else { Err(code) }
    }

    fn addresses(&self, port: u16) -> Vec<SocketAddr> {
        let mut found = Vec::new();
        let mut next = self.0;
        while !next.is_null() {
            #[expect(unsafe_code, reason = "the list is one of C")]
            // SAFETY: `next` is not null and points into the list that getaddrinfo(3) made, which lives as long as
            // `self`; nothing writes to it.
            let entry = unsafe { &*next };
            found.extend(address(entry, port));
            next = entry.ai_next;
        }
        found
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the list is one of C")]
        // SAFETY: the list is getaddrinfo's, has not been freed, and no reference into it outlives `self`.
        unsafe {
            libc::freeaddrinfo(self.0);
        }
    }
}

/// `None` for a family other than IPv4 and IPv6.
fn address(entry: &libc::addrinfo, port: u16) -> Option<SocketAddr> {
    match entry.ai_family {
        libc::AF_INET => {
            #[expect(unsafe_code, reason = "the entry is one of C")]
            // SAFETY: for this family `ai_addr` points to a `sockaddr_in` (getaddrinfo(3)); it is copied, wherever it lies.
            let v4 = unsafe { ptr::read_unaligned(entry.ai_addr.cast::<libc::sockaddr_in>()) };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, port).into())
        }
        libc::AF_INET6 => {
            #[expect(unsafe_code, reason = "the entry is one of C")]
            // SAFETY: for this family `ai_addr` points to a `sockaddr_in6` (getaddrinfo(3)); it is copied, wherever it
            // lies.
            let v6 = unsafe { ptr::read_unaligned(entry.ai_addr.cast::<libc::sockaddr_in6>()) };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

fn reason(code: libc::c_int) -> String {
    #[expect(unsafe_code, reason = "the text is one of C")]
    // SAFETY: gai_strerror(3) gives a C string that is never freed or changed, also for a code that it does not know.
    let text = unsafe { CStr::from_ptr(libc::gai_strerror(code)) };
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_own_answer() {
        let found = |text: &str| Lookup::Found(vec![text.parse().expect("an address with a port")]);
        assert_eq!(look_up("192.0.2.7", 80), found("192.0.2.7:80"));
        assert_eq!(look_up("2001:db8::7", 443), found("[2001:db8::7]:443"));
    }

    #[test]
    fn this_machine_has_loopback_addresses_each_once() {
        let Lookup::Found(mut found) = look_up("localhost", 1) else { panic!("localhost has no address") };
        assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
        let count = found.len();
        found.dedup();
        assert_eq!(found.len(), count);
    }

    #[test]
    fn a_name_that_cannot_be_one_does_not_exist() {
        assert_eq!(look_up("a\0b", 1), Lookup::NoSuchName);
        assert_eq!(look_up("", 1), Lookup::NoSuchName);
    }
}
