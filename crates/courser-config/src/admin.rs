//! `[admin]`: where operators and monitoring connect, and what that needs.

use crate::address::{self, ListenAddress};
use crate::config::Admin;
use crate::dns;
use crate::draft::ListenerDraft;
use crate::problem::{Problem, Problems};
use crate::read;
use crate::value::Value;

/// Reads an IP address with a port, or the path of a unix socket.
pub(crate) fn listen(value: &Value) -> Result<ListenAddress, Problems> {
    if let Some(port) = read::text(value, "an address")?.strip_prefix("localhost:") {
        let help = format!("write `127.0.0.1:{port}`");
        return Err(Problem::at(&value.origin, "`localhost` is not an IP address", None).help(help).into());
    }
    match address::listen(value)? {
        address @ (ListenAddress::Any { .. } | ListenAddress::Ip(_) | ListenAddress::Unix(_)) => Ok(address),
        other => {
            let help = "write for example `127.0.0.1:9440`, or `unix:/run/courser/admin.sock`";
            let message = format!("`{other}` is no address for `admin`");
            Err(Problem::at(&value.origin, message, None).help(help).into())
        }
    }
}

/// Reads what stands in `Host`: a host name or an IP address.
pub(crate) fn server_name(value: &Value) -> Result<String, Problems> {
    let text = read::text(value, "a host name")?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if bare.parse::<std::net::IpAddr>().is_ok() {
        return Ok(bare.to_owned());
    }
    match dns::wrong(text) {
        None => Ok(text.to_ascii_lowercase()),
        Some((why, _)) => {
            let message = format!("`{text}` is not a host name: {why}");
            let help = "write it without scheme and port, for example `edge-1.internal`";
            Err(Problem::at(&value.origin, message, None).help(help).into())
        }
    }
}

pub(crate) fn check(admin: &Admin, listeners: &[ListenerDraft], problems: &mut Problems) {
    for address in &admin.listen {
        let mut taken = listeners.iter().flat_map(|listener| &listener.listen);
        if let Some(first) = taken.find(|other| other.value.overlaps(&address.value)) {
            let message = format!("`{}` is listened on twice", address.value);
            problems.push(Problem::at(&address.origin, message, None).related(&first.origin, "first here"));
        }
        let is_guarded = !admin.allow.is_empty() && admin.token.is_some();
        if !is_local(&address.value) && !is_guarded {
            let message = format!("other machines can reach `{}`", address.value);
            let help = "say who may connect, by `admin.allow` (`--admin-allow`) and `admin.token` (`--admin-token`), \
                        or listen on a loopback address or a unix socket";
            problems.push(Problem::at(&address.origin, message, None).help(help));
        }
    }
    if let (Some(token), []) = (&admin.token, &admin.listen[..]) {
        let help = "add `admin.listen` (`--admin`), for example `127.0.0.1:9440`";
        let problem = Problem::at(&token.origin, "there is no address that this is for", None);
        problems.push(problem.help(help).as_warning());
    }
}

fn is_local(address: &ListenAddress) -> bool {
    match address {
        ListenAddress::Ip(ip) => ip.ip().to_canonical().is_loopback(),
        ListenAddress::Unix(_) => true,
        _ => false,
    }
}
