//! What keeps a client at its server: reading `affinity`, and where it is of no use.

use std::ops::RangeInclusive;

use crate::config::{Affinity, ClientAuth};
use crate::draft::HostDraft;
use crate::near::suggest;
use crate::problem::{Problem, Problems};
use crate::read::{self, Located};
use crate::value::Value;

/// Bits of an IPv6 address that a device keeps while it changes the others (RFC 8981).
const KEPT_OF_IPV6: u8 = 64;

/// Reads `source`, `source/24`, `source/24,/56`, or one of the other names.
pub(crate) fn read(value: &Value) -> Result<Affinity, Problems> {
    const NAMES: [&str; 4] = ["source", "server-name", "client-certificate", "session"];
    let text = read::text(value, "what keeps a client at its server")?;
    let (name, lengths) = text.split_at(text.find('/').unwrap_or(text.len()));
    match (name, lengths) {
        ("source", "") => Ok(Affinity::Source { v4: 32, v6: KEPT_OF_IPV6 }),
        ("source", lengths) => source(value, lengths),
        ("server-name", "") => Ok(Affinity::ServerName),
        ("client-certificate", "") => Ok(Affinity::ClientCertificate),
        ("session", "") => Ok(Affinity::Session),
        (known, lengths) if NAMES.contains(&known) => {
            let help = "only `source` has lengths of prefixes";
            Err(Problem::at(&value.origin, format!("`{lengths}` says nothing here"), Some(help.into()))
                .into())
        }
        _ => {
            Err(Problem::at(&value.origin, format!("unknown affinity `{text}`"), Some(suggest(name, NAMES)))
                .into())
        }
    }
}

fn source(value: &Value, lengths: &str) -> Result<Affinity, Problems> {
    let (v4, v6) = lengths.split_once(',').map_or((lengths, None), |(v4, v6)| (v4, Some(v6.trim_start())));
    let length = |text: &str, range: RangeInclusive<u8>, family: &str| {
        let number = text.strip_prefix('/').and_then(|number| number.parse().ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let message = format!("`{text}` is not a length of {family} prefixes");
            let help = format!("from `/{}` to `/{}`, as in `source/24,/56`", range.start(), range.end());
            Problems::from(Problem::at(&value.origin, message, Some(help)))
        })
    };
    let v6 = v6.map_or(Ok(KEPT_OF_IPV6), |v6| length(v6, 1..=128, "IPv6"));
    Ok(Affinity::Source { v4: length(v4, 1..=32, "IPv4")?, v6: v6? })
}

/// A warning where no connection has what its affinity goes by: of the host whose pool is named there, or without one of
/// a relay.
pub(crate) fn useless(
    affinity: &Located<Affinity>,
    host: Option<&HostDraft>,
    pool: &Located<String>,
) -> Option<Problem> {
    let asks =
        |host: &HostDraft| host.client_auth.as_ref().is_some_and(|mode| mode.value != ClientAuth::None);
    let (message, help) = match affinity.value {
        Affinity::ClientCertificate if host.is_none() => {
            ("a relay sees no client's certificate", "choose another affinity")
        }
        Affinity::ClientCertificate if !host.is_some_and(asks) => {
            ("no client shows a certificate here", "set `client_auth`, or choose another affinity")
        }
        Affinity::Session if host.is_some() => (
            "TLS ends here, and its sessions with it: no server of the pool has any",
            "choose another affinity, or none; `session` is for connections that are relayed without being decrypted",
        ),
        _ => return None,
    };
    let problem = Problem::at(&affinity.origin, message, Some(help.into())).as_warning();
    Some(problem.related(&pool.origin, "here"))
}
