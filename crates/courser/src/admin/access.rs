//! Who may ask: by address, by token, and by the name that the server is called.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use courser_config::{Admin, Config, Located, Network, Problem};
use courser_net::account::Account;
use zeroize::Zeroizing;

use crate::exit::Failure;
use crate::file_error::unusable;
use crate::secret_file;

/// Rules for requests.
#[derive(Default)]
pub(crate) struct Access {
    /// Empty: loopback addresses.
    pub(crate) allow: Vec<Network>,
    pub(crate) token: Option<Zeroizing<String>>,
    /// Names in lower case, and addresses without brackets.
    pub(crate) server_names: Vec<String>,
}

impl Access {
    /// From the settings, with the token, which `reader` has to itself.
    pub(crate) fn read(config: &Config, reader: &Account) -> Result<Self, Failure> {
        let Admin { allow, token, server_names, .. } = &config.admin;
        let token = token.as_ref().map(|file| read_token(file, reader)).transpose()?;
        Ok(Self { allow: allow.clone(), token, server_names: server_names.clone() })
    }

    pub(crate) fn admits(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        client.is_loopback() || self.allow.iter().any(|network| network.contains(client))
    }

    /// Whether `Host` names this server. A page of another site that has its name point here would send its own name (DNS
    /// rebinding). `local`: the address that the client has connected to; `None`: a unix socket, where no browser connects.
    pub(crate) fn is_for_us(&self, host: Option<&str>, local: Option<IpAddr>) -> bool {
        let Some(local) = local.map(|ip| ip.to_canonical()) else { return true };
        let Some(host) = host.map(without_port) else { return false };
        match host.parse::<IpAddr>() {
            Ok(ip) => {
                let ip = ip.to_canonical();
                let is_known = || self.server_names.iter().any(|name| name.parse() == Ok(ip));
                ip.is_loopback() || ip == local || is_known()
            }
            Err(_) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                host == "localhost" || self.server_names.contains(&host)
            }
        }
    }

    /// Whether `Authorization` has the token, where one is needed.
    pub(crate) fn is_authorized(&self, authorization: Option<&[u8]>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = authorization.and_then(|given| {
            let (scheme, token) = given.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
        });
        given.is_some_and(|given| is_same(given.trim_ascii(), token.as_bytes()))
    }
}

fn read_token(file: &Located<PathBuf>, reader: &Account) -> Result<Zeroizing<String>, Failure> {
    let path = &file.value;
    let text =
        secret_file::read(path, reader).map_err(|refusal| unusable(&file.origin, path, &refusal, reader))?;
    let token = Zeroizing::new(text.trim().to_owned());
    if (16..=512).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(token);
    }
    let message = format!("{}: a token has 16 to 512 visible ASCII characters", path.display());
    Err(Problem::at(&file.origin, message, Some("make one: openssl rand -hex 32".to_owned())).into())
}

/// The host of `host`, `host:port`, `[::1]` or `[::1]:port`.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    if host.parse::<SocketAddr>().is_err() && host.parse::<IpAddr>().is_ok() {
        return host;
    }
    host.rsplit_once(':').map_or(host, |(host, _)| host)
}

/// Takes as long for a wrong token as for the right one of the same length.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let difference = given.iter().zip(token).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    given.len() == token.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn hosts_are_those_that_name_this_server() {
        let access = Access {
            server_names: vec!["edge-1.internal".to_owned(), "192.0.2.7".to_owned()],
            ..Access::default()
        };
        let local = Some(ip("10.0.0.1"));
        for ours in [
            "localhost",
            "localhost:9440",
            "LOCALHOST",
            "localhost.",
            "127.0.0.1:9440",
            "127.0.0.2",
            "[::1]:9440",
            "[::1]",
            "10.0.0.1:9440",
            "10.0.0.1",
            "[::ffff:10.0.0.1]:9440",
            "Edge-1.internal:80",
            "192.0.2.7:9440",
        ] {
            assert!(access.is_for_us(Some(ours), local), "{ours}");
        }
        for foreign in [
            "evil.example",
            "evil.example:9440",
            "10.0.0.2:9440",
            "",
            "localhost.evil.example",
            "[fe80::1]",
            "a:b:c",
        ] {
            assert!(!access.is_for_us(Some(foreign), local), "{foreign}");
            assert!(access.is_for_us(Some(foreign), None), "{foreign} by a unix socket");
        }
        assert!(!access.is_for_us(None, local));
        assert!(access.is_for_us(Some("10.0.0.1"), Some(ip("::ffff:10.0.0.1"))));
    }

    #[test]
    fn clients_are_loopback_ones_and_those_that_are_allowed() {
        let network = |address, prefix| Network { address: ip(address), prefix };
        let access =
            Access { allow: vec![network("10.0.0.0", 8), network("2001:db8::", 32)], ..Access::default() };
        for welcome in ["127.0.0.1", "::1", "10.9.8.7", "::ffff:10.9.8.7", "2001:db8::7"] {
            assert!(access.admits(ip(welcome)), "{welcome}");
        }
        for stranger in ["11.0.0.1", "2001:db9::1"] {
            assert!(!access.admits(ip(stranger)), "{stranger}");
        }
        assert!(!Access::default().admits(ip("10.0.0.1")));
    }

    #[test]
    fn a_token_is_taken_whole_or_not_at_all() {
        let token = |token: &str| Access { token: Some(token.to_owned().into()), ..Access::default() };
        let access = token("0123456789abcdef");
        assert!(access.is_authorized(Some(b"Bearer 0123456789abcdef")));
        assert!(access.is_authorized(Some(b"bearer  0123456789abcdef")));
        for wrong in
            ["Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Bearer ", "Basic 0123456789abcdef", ""]
        {
            assert!(!access.is_authorized(Some(wrong.as_bytes())), "{wrong}");
        }
        assert!(!access.is_authorized(None) && Access::default().is_authorized(None));
    }
}
