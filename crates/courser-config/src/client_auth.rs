//! Checks of the settings for client certificates. May not read the files of authorities.

use crate::config::ClientAuth;
use crate::draft::{HostDraft, ListenerDraft};
use crate::named::Named;
use crate::problem::{Problem, Problems};
use crate::source::SourceSpan;

/// Reports hosts that request certificates without authorities, and authorities that no host uses.
pub(crate) fn check(listener: &ListenerDraft, problems: &mut Problems) {
    let own = [&listener.own];
    for (name, origin) in SETTINGS {
        let shared = origin(&listener.own);
        // Once, not for each host: a listener may have a hundred thousand.
        let is_shared_used = own
            .into_iter()
            .chain(&listener.hosts)
            .any(|host| requests_certificate(host) && origin(host) == shared);
        let unused = |host: &&HostDraft| match origin(host) == shared {
            true => !is_shared_used,
            false => !requests_certificate(host),
        };
        let mut seen = Vec::new();
        for host in own.into_iter().chain(&listener.hosts).filter(unused) {
            if let Some(origin) = origin(host).filter(|origin| !seen.contains(origin)) {
                seen.push(origin);
                problems.push(is_unused(name, origin));
            }
        }
    }
    let problems_of_hosts: Vec<_> =
        listener.hosts.iter().chain([&listener.own]).filter_map(without_authority).collect();
    for (position, (origin, problem)) in problems_of_hosts.iter().enumerate() {
        // What hosts have from their listener is one mistake.
        if problems_of_hosts[..position].iter().all(|(earlier, _)| earlier != origin) {
            problems.push(problem.clone());
        }
    }
}

fn requests_certificate(host: &HostDraft) -> bool {
    host.client_auth.as_ref().is_some_and(|mode| mode.value != ClientAuth::None)
}

/// A setting's name, and where a host has it from.
type Setting = (&'static str, fn(&HostDraft) -> Option<&SourceSpan>);

/// What is of use only where certificates are requested.
const SETTINGS: [Setting; 2] = [
    ("client_ca", |host: &HostDraft| Some(&host.client_ca.first()?.origin)),
    ("client_crl", |host| Some(&host.client_crl.as_ref()?.origin)),
];

fn is_unused(name: &str, origin: &SourceSpan) -> Problem {
    let message = format!("`{name}` is set, but no certificate is requested from clients");
    let help = "add `client_auth = \"required\"`, or \"optional\"";
    Problem::at(origin, message, Some(help.into()))
}

fn without_authority(host: &HostDraft) -> Option<(SourceSpan, Problem)> {
    let mode =
        host.client_auth.as_ref().filter(|_| requests_certificate(host) && host.client_ca.is_empty())?;
    let message =
        format!("client certificates are {}, but there is no authority to verify them", mode.value.name());
    let help = "add `client_ca`, the certificate of the authority that issues them";
    Some((mode.origin.clone(), Problem::at(&mode.origin, message, Some(help.into()))))
}
