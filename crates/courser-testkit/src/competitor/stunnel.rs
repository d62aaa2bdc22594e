//! stunnel. Its listen queue has no setting (it uses `SOMAXCONN`), its session cache cannot be turned off.

use std::{ffi::OsString, net::SocketAddr};

use super::Setting;
use crate::{Folder, client::Resume};

pub(super) fn arguments(setting: &Setting, listen: SocketAddr, folder: &Folder) -> Vec<OsString> {
    vec![folder.write("stunnel.conf", configuration(setting, listen)).into()]
}

fn configuration(setting: &Setting, listen: SocketAddr) -> String {
    let tickets = if setting.terms.resume == Resume::SessionId { "options = NO_TICKET" } else { "" };
    format!(
        "foreground = yes
debug = crit
syslog = no
pid =
[tls]
accept = {listen}
connect = {backend}
cert = {certificate}
sslVersion = {version}
ciphers = {suite}
ciphersuites = {tls13_suite}
curves = {group}
TIMEOUTclose = 0
{tickets}
",
        backend = setting.backend,
        certificate = setting.certificate.display(),
        version = setting.by_version("TLSv1.2", "TLSv1.3"),
        suite = setting.tls12_suite(),
        tls13_suite = setting.terms.profile.suite(),
        group = setting.terms.profile.group(),
    )
}
