//! `[acme]` and `cert = { acme = true }`: certificates that courser orders, and what that needs.

use crate::config::Acme;
use crate::draft::{HostDraft, ListenerDraft};
use crate::problem::{Problem, Problems};
use crate::read::{self, Located};
use crate::value::Value;

/// Reads the URL of a directory.
pub(crate) fn directory(value: &Value) -> Result<String, Problems> {
    let text = read::text(value, "a URL")?;
    let wrong = |message: String, help: String| Err(Problem::at(&value.origin, message, Some(help)).into());
    let example = "write for example `https://acme.example/directory`";
    let Some(rest) = text.strip_prefix("https://") else {
        return match text.strip_prefix("http://") {
            Some(rest) => {
                let help =
                    format!("write `https://{rest}`; `directory_ca` names the authorities of a private one");
                wrong(format!("`{text}` is not https"), help)
            }
            None => wrong(format!("`{text}` is not the URL of a directory"), example.to_owned()),
        };
    };
    let host = rest.split('/').next().unwrap_or_default();
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || host.contains('@') || !is_visible || text.contains('#') {
        return wrong(format!("`{text}` is not the URL of a directory"), example.to_owned());
    }
    Ok(text.to_owned())
}

/// Reads a mail address, with or without `mailto:`.
pub(crate) fn contact(value: &Value) -> Result<String, Problems> {
    let text = read::text(value, "a mail address")?;
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    let is_whole =
        matches!(address.split_once('@'), Some((user, host)) if !user.is_empty() && host.contains('.'));
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !b",?<>".contains(&byte));
    if is_whole && is_plain {
        return Ok(format!("mailto:{address}"));
    }
    let help = "write for example `ops@shop.example`";
    Err(Problem::at(&value.origin, format!("`{text}` is not a mail address"), Some(help.into())).into())
}

/// Each host that orders needs names, and the files a place.
pub(crate) fn check(
    acme: &Acme,
    listeners: &[ListenerDraft],
    state_folder: Option<&Located<std::path::PathBuf>>,
    problems: &mut Problems,
) {
    let mut orders = false;
    for listener in listeners {
        orders |= listener.own.acme.is_some() || listener.hosts.iter().any(|host| host.acme.is_some());
        for host in &listener.hosts {
            problems.extend(nameless(host));
        }
        // What its hosts inherit is theirs; alone it has no names.
        if listener.hosts.is_empty() {
            problems.extend(nameless(&listener.own));
        }
    }
    let places = listeners.iter().flat_map(|listener| listener.hosts.iter().chain([&listener.own]));
    let first = places.filter_map(|host| host.acme.as_ref()).next();
    if let (Some(origin), None) = (first, state_folder) {
        let help =
            "add `state_folder` (`--state-folder`) at the top of the file, for example `/var/lib/courser`";
        let message = "there is no folder to keep ordered certificates in";
        problems.push(Problem::at(origin, message, None).help(help));
    }
    let set = [&acme.eab, &acme.directory_ca].into_iter().flatten().next();
    if let (Some(set), false) = (set, orders) {
        let help = "add `cert = { acme = true }` to a host that has `names`";
        problems.push(Problem::at(&set.origin, "no host orders a certificate", None).help(help).as_warning());
    }
}

fn nameless(host: &HostDraft) -> Option<Problem> {
    let origin = host.acme.as_ref().filter(|_| host.names.is_empty())?;
    let help = "add `names` to a `[[listener.host]]`, and `cert = { acme = true }` there";
    Some(Problem::at(origin, "there is no name to order a certificate for", None).help(help))
}
