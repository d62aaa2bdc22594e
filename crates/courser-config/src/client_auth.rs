//! Checks of the settings for client certificates. May not read the files of authorities.

use std::path::PathBuf;

use crate::config::ClientAuth;
use crate::draft::{HostDraft, ListenerDraft};
use crate::named::Named;
use crate::problem::{Problem, Problems};
use crate::read::Located;
use crate::source::SourceSpan;

/// Reports hosts that request certificates without authorities, and authorities that no host uses.
pub(crate) fn check(listener: &ListenerDraft, problems: &mut Problems) {
    let shared = &listener.own.client_ca;
    let used = |host: &HostDraft| requests_certificate(host) && host.client_ca == *shared;
    if !requests_certificate(&listener.own) && !listener.hosts.iter().any(used) {
        problems.extend(unused(shared));
    }
    for host in listener.hosts.iter().filter(|host| !requests_certificate(host) && host.client_ca != *shared)
    {
        problems.extend(unused(&host.client_ca));
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

fn unused(authorities: &[Located<PathBuf>]) -> Option<Problem> {
    let origin = &authorities.first()?.origin;
    let message = "`client_ca` is set, but no certificate is requested from clients";
    let help = "add `client_auth = \"required\"`, or \"optional\"";
    Some(Problem::at(origin, message, Some(help.into())))
}

fn without_authority(host: &HostDraft) -> Option<(SourceSpan, Problem)> {
    let mode =
        host.client_auth.as_ref().filter(|_| requests_certificate(host) && host.client_ca.is_empty())?;
    let message =
        format!("client certificates are {}, but there is no authority to verify them", mode.value.name());
    let help = "add `client_ca`, the certificate of the authority that issues them";
    Some((mode.origin.clone(), Problem::at(&mode.origin, message, Some(help.into()))))
}
