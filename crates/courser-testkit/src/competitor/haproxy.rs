//! HAProxy in TCP mode, without a master process.

use std::{ffi::OsString, net::SocketAddr};

use super::Setting;
use crate::{Folder, client::Resume};

pub(super) fn arguments(setting: &Setting, listen: SocketAddr, folder: &Folder) -> Vec<OsString> {
    let configuration = folder.write("haproxy.cfg", configuration(setting, listen));
    vec!["-db".into(), "-q".into(), "-f".into(), configuration.into()]
}

fn configuration(setting: &Setting, listen: SocketAddr) -> String {
    let (cache, tickets) = match setting.terms.resume {
        Resume::SessionId => ("tune.ssl.cachesize 20000", "no-tls-tickets"),
        Resume::Ticket => ("tune.ssl.cachesize 0", ""),
        Resume::Never => ("", ""),
    };
    format!(
        "global
  nbthread 1
  maxconn 8000
  tune.ssl.default-dh-param 2048
  {cache}
defaults
  mode tcp
  timeout connect 10s
  timeout client 5m
  timeout server 5m
frontend tls
  bind {listen} backlog {backlog} ssl crt {certificate} ssl-min-ver {version} ssl-max-ver {version} \
ciphers {suite} ciphersuites {tls13_suite} curves {group} {tickets}
  default_backend origin
backend origin
  server origin {backend}
",
        backlog = setting.backlog,
        certificate = setting.certificate.display(),
        version = setting.by_version("TLSv1.2", "TLSv1.3"),
        suite = setting.tls12_suite(),
        tls13_suite = setting.terms.profile.suite(),
        group = setting.terms.profile.group(),
        backend = setting.backend,
    )
}
