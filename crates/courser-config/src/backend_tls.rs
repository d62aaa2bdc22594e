//! TLS with backends: reading `tls` of a pool and `backend_tls` of a host, and whether each server can be verified. May not
//! read the files that they name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::address::{BackendAddress, located_file};
use crate::config::{BackendName, BackendTls, Verify};
use crate::dns;
use crate::draft::{ActionDraft, HostDraft, ListenerDraft, PoolDraft, RuleDraft, certificate};
use crate::near::suggest;
use crate::problem::{Problem, Problems};
use crate::read::{self, Located, wrong_kind};
use crate::revocation;
use crate::value::{Literal, Table, Value};

/// What `server_name` says where the name is the client's.
const FROM_CLIENT: &str = "from-client";

/// Reads `true`, `false`, or a table.
pub(crate) fn read(value: &Value) -> Result<Option<Located<BackendTls>>, Problems> {
    let tls = match &value.literal {
        Literal::Boolean(false) => return Ok(None),
        Literal::Boolean(true) => {
            BackendTls { verify: Verify::System, server_name: BackendName::Own, cert: None, crl: None }
        }
        Literal::Table(table) => from_table(table)?,
        _ => return Err(wrong_kind(value, "`true`, or a table such as `{ verify = \"system\" }`")),
    };
    Ok(Some(Located { value: tls, origin: value.origin.clone() }))
}

fn from_table(table: &Table) -> Result<BackendTls, Problems> {
    table.refuse_others(&["verify", "server_name", "cert", "crl"])?;
    let verify = table.get("verify").map_or(Ok(Verify::System), verify)?;
    if let (Verify::Pins(_) | Verify::Off, Some(lists)) = (&verify, table.get("crl")) {
        let help = "leave it out, or verify by authorities";
        let message = "a list of revoked certificates is of an authority, and none is asked here";
        return Err(Problem::at(&lists.origin, message, Some(help.into())).into());
    }
    Ok(BackendTls {
        verify,
        server_name: table.get("server_name").map_or(Ok(BackendName::Own), server_name)?,
        cert: table.get("cert").map(certificate).transpose()?,
        crl: table.get("crl").map(revocation::read).transpose()?,
    })
}

fn verify(value: &Value) -> Result<Verify, Problems> {
    match &value.literal {
        Literal::Text(text) if text == "system" => Ok(Verify::System),
        Literal::Text(text) if text == "off" => Ok(Verify::Off),
        Literal::Table(table) => {
            table.refuse_others(&["pin"])?;
            match table.get("pin") {
                Some(pins) => read::distinct(pins, pin).map(Verify::Pins),
                None => Err(Problem::at(&value.origin, "the table has no `pin`", None).into()),
            }
        }
        Literal::List(_) => read::some(value, located_file).map(Verify::Files),
        Literal::Text(text) if !text.contains(['.', '/']) => {
            let help = match suggest(text, ["system", "off"]) {
                nearest if nearest.starts_with("did") => nearest,
                all => format!("{all}, or a list of files with authorities"),
            };
            Err(Problem::at(&value.origin, format!("unknown verification `{text}`"), Some(help)).into())
        }
        Literal::Text(_) => Ok(Verify::Files(vec![located_file(value)?])),
        _ => Err(wrong_kind(value, "`\"system\"`, a list of files, `{ pin = […] }` or `\"off\"`")),
    }
}

/// Reads `sha256/BASE64` (as in RFC 7469, section 2.4).
fn pin(value: &Value) -> Result<[u8; 32], Problems> {
    let text = read::text(value, "a pin")?;
    let digest = text.strip_prefix("sha256/").and_then(|text| STANDARD.decode(text).ok());
    digest.and_then(|digest| digest.try_into().ok()).ok_or_else(|| {
        let help = "write `sha256/` and 44 characters; of a certificate: openssl x509 -in FILE -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64";
        Problem::at(&value.origin, format!("`{text}` is not a pin"), Some(help.into())).into()
    })
}

fn server_name(value: &Value) -> Result<BackendName, Problems> {
    let text = read::text(value, "a name")?;
    if text == FROM_CLIENT {
        return Ok(BackendName::FromClient);
    }
    if text.parse::<std::net::IpAddr>().is_ok() {
        return Ok(BackendName::Fixed(text.to_owned()));
    }
    match dns::wrong(text) {
        None => Ok(BackendName::Fixed(text.to_ascii_lowercase())),
        Some((why, help)) => {
            let help = help.filter(|_| !text.contains('*')); // which is about names of hosts
            let message = format!("`{text}` is not a server name: {why}");
            Err(Problem::at(&value.origin, message, help.map(str::to_owned)).into())
        }
    }
}

/// Reports servers that cannot be verified since they have no name, and settings that have no effect.
pub(crate) fn check(pools: &[PoolDraft], listeners: &[ListenerDraft], problems: &mut Problems) {
    for pool in pools {
        let servers = pool.servers.iter().map(|server| &server.address);
        problems.extend(pool.tls.iter().filter_map(|tls| nameless(tls, servers.clone())));
    }
    let rules = listeners.iter().flat_map(|listener| &listener.routes);
    problems.extend(rules.filter_map(|rule| twice_encrypted(rule, pools)));
    let mut seen = Vec::new();
    for host in listeners.iter().flat_map(|listener| listener.hosts.iter().chain([&listener.own])) {
        let Some(tls) = &host.backend_tls else { continue };
        // What hosts have from their listener is one mistake.
        let problem = of_host(tls, host).filter(|_| !seen.contains(&&tls.origin));
        if let Some(problem) = problem {
            seen.push(&tls.origin);
            problems.push(problem);
        }
    }
}

/// What a relay passes on is TLS already.
fn twice_encrypted(rule: &RuleDraft, pools: &[PoolDraft]) -> Option<Problem> {
    let ActionDraft::Relay(name) = &rule.action else { return None };
    let tls = pools.iter().find(|pool| pool.name.value == name.value)?.tls.as_ref()?;
    let message = format!("the rule passes TLS on as it comes, and the pool `{}` has `tls`", name.value);
    let help = "leave `tls` out, or give the servers another pool for relays";
    Some(Problem::at(&name.origin, message, None).related(&tls.origin, "the pool's").help(help))
}

fn of_host(tls: &Located<BackendTls>, host: &HostDraft) -> Option<Problem> {
    if let Some(pool) = &host.pool {
        let help = format!("write it as `tls` in `[pool.{}]`", pool.value);
        let problem =
            Problem::at(&tls.origin, "`backend_tls` is of `backend`, and here is a `pool`", Some(help));
        return Some(problem.related(&pool.origin, "the pool"));
    }
    nameless(tls, host.backends.iter())
}

fn nameless<'a>(
    tls: &Located<BackendTls>,
    mut servers: impl Iterator<Item = &'a BackendAddress>,
) -> Option<Problem> {
    if tls.value.server_name != BackendName::Own
        || !matches!(tls.value.verify, Verify::System | Verify::Files(_))
    {
        return None;
    }
    let server =
        servers.find(|address| matches!(address, BackendAddress::Unix(_) | BackendAddress::Abstract(_)))?;
    let message = format!("`{server}` has no name that its certificate could be for");
    Some(Problem::at(&tls.origin, message, None).help("add `server_name`"))
}
