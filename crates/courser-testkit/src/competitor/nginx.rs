//! nginx, `stream` with `ssl`.

use std::{ffi::OsString, net::SocketAddr};

use super::{Setting, split_certificate};
use crate::{Folder, client::Resume};

pub(super) fn arguments(setting: &Setting, listen: SocketAddr, folder: &Folder) -> Vec<OsString> {
    let configuration = folder.write("nginx.conf", configuration(setting, listen, folder));
    // The prefix is for what it would open under its compiled-in folder before it has read the file.
    vec!["-p".into(), folder.path().into(), "-c".into(), configuration.into()]
}

fn configuration(setting: &Setting, listen: SocketAddr, folder: &Folder) -> String {
    let (certificate, key) = split_certificate(setting, folder);
    let module = ["/usr/lib/nginx/modules/ngx_stream_module.so"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
        .map_or(String::new(), |path| format!("load_module {path};"));
    let (cache, tickets) = match setting.terms.resume {
        Resume::SessionId => ("shared:tls:10m", "off"),
        Resume::Never | Resume::Ticket => ("none", "on"),
    };
    format!(
        "{module}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr crit;
worker_rlimit_nofile 20000;
events {{ worker_connections 16384; }}
stream {{
  access_log off;
  server {{
    listen {listen} ssl backlog={backlog};
    proxy_pass {backend};
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols {protocol};
    ssl_ciphers {suite};
    ssl_conf_command Ciphersuites {tls13_suite};
    ssl_ecdh_curve {group};
    ssl_prefer_server_ciphers on;
    ssl_session_cache {cache};
    ssl_session_tickets {tickets};
  }}
}}
",
        folder = folder.path().display(),
        certificate = certificate.display(),
        key = key.display(),
        backlog = setting.backlog,
        backend = setting.backend,
        protocol = setting.by_version("TLSv1.2", "TLSv1.3"),
        suite = setting.tls12_suite(),
        tls13_suite = setting.terms.profile.suite(),
        group = setting.terms.profile.group(),
    )
}
