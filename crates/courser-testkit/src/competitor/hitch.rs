//! hitch. It has no switch for tickets; its session cache is OpenSSL's own, in each worker.

use std::{ffi::OsString, net::SocketAddr};

use nix::unistd::Uid;

use super::Setting;
use crate::Folder;

pub(super) fn arguments(setting: &Setting, listen: SocketAddr, folder: &Folder) -> Vec<OsString> {
    let configuration = folder.write("hitch.conf", configuration(setting, listen));
    vec!["--config".into(), configuration.into()]
}

fn configuration(setting: &Setting, listen: SocketAddr) -> String {
    format!(
        "frontend = \"[{host}]:{port}\"
backend = \"[{backend_host}]:{backend_port}\"
pem-file = \"{certificate}\"
workers = 1
backlog = {backlog}
daemon = off
log-level = 1
{user}
tls-protos = {version}
ciphers = \"{suite}\"
ciphersuites = \"{tls13_suite}\"
ecdh-curve = \"{group}\"
",
        // Started as root it insists on another user for its workers; it has read the key by then.
        user = if Uid::effective().is_root() { "user = \"nobody\"\ngroup = \"nogroup\"" } else { "" },
        host = listen.ip(),
        port = listen.port(),
        backend_host = setting.backend.ip(),
        backend_port = setting.backend.port(),
        certificate = setting.certificate.display(),
        backlog = setting.backlog,
        version = setting.by_version("TLSv1.2", "TLSv1.3"),
        suite = setting.tls12_suite(),
        tls13_suite = setting.terms.profile.suite(),
        group = setting.terms.profile.group(),
    )
}
