//! Client certificates: who has to show one, and which authorities are believed. May not read their files.

use std::path::PathBuf;

use crate::config::ClientAuth;
use crate::draft::{HostDraft, ListenerDraft};
use crate::named::Named;
use crate::problem::{Problem, Problems};
use crate::read::Located;
use crate::source::SourceSpan;

/// That whoever is asked for a certificate can be judged, and that nobody believes in a check that does not happen.
pub(crate) fn check(listener: &ListenerDraft, problems: &mut Problems) {
    let shared = &listener.own.client_ca;
    let used = |host: &HostDraft| asks(host) && host.client_ca == *shared;
    if !asks(&listener.own) && !listener.hosts.iter().any(used) {
        problems.extend(unused(shared));
    }
    for host in listener.hosts.iter().filter(|host| !asks(host) && host.client_ca != *shared) {
        problems.extend(unused(&host.client_ca));
    }
    let complaints: Vec<_> = listener.hosts.iter().chain([&listener.own]).filter_map(baseless).collect();
    for (position, (origin, problem)) in complaints.iter().enumerate() {
        // What hosts have from their listener is one mistake.
        if complaints[..position].iter().all(|(earlier, _)| earlier != origin) {
            problems.push(problem.clone());
        }
    }
}

fn asks(host: &HostDraft) -> bool {
    host.client_auth.as_ref().is_some_and(|mode| mode.value != ClientAuth::None)
}

fn unused(authorities: &[Located<PathBuf>]) -> Option<Problem> {
    let origin = &authorities.first()?.origin;
    let message = "`client_ca` is given, but no client is asked for a certificate";
    let help = "add `client_auth = \"required\"`, or \"optional\"";
    Some(Problem::at(origin, message, Some(help.into())))
}

fn baseless(host: &HostDraft) -> Option<(SourceSpan, Problem)> {
    let mode = host.client_auth.as_ref().filter(|_| asks(host) && host.client_ca.is_empty())?;
    let message = format!("client certificates are {}, but no authority is believed", mode.value.name());
    let help = "add `client_ca`, the certificate of the authority that issues them";
    Some((mode.origin.clone(), Problem::at(&mode.origin, message, Some(help.into()))))
}
