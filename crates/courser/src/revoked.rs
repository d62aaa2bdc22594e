//! The lists of revoked certificates that a configuration names: each file is read once, all problems are reported in one
//! run. What is read is immutable; a reload reads anew.

use std::collections::HashMap;
use std::path::PathBuf;

use courser_config::{Config, CrlDepth, CrlFallback, Located, Problem, Problems};
use courser_net::account::Account;
use courser_tls::{Authorities, Revocation, RevocationDepth, RevocationList};

use crate::authorities::Trusted;
use crate::file_error::unusable;
use crate::input_file;
use crate::validity::now;

/// The longest file of lists, bytes: some nine million certificates.
const LONGEST: u64 = 256 << 20;

/// Lists by the files that they were read from.
#[derive(Default)]
pub(crate) struct Revoked {
    by_file: HashMap<PathBuf, Vec<RevocationList>>,
}

impl Revoked {
    /// Reads every file that `config` names, and verifies what an authority in `trusted` has signed; errors and warnings go
    /// to `problems`.
    pub(crate) fn load(
        config: &Config,
        trusted: &Trusted,
        reader: &Account,
        problems: &mut Problems,
    ) -> Self {
        let mut revoked = Self::default();
        for host in config.hosts() {
            let settings = host.client_crl.as_ref().map(|lists| &lists.value);
            let authorities = trusted.of_clients(host);
            settings.into_iter().for_each(|it| revoked.add(it, &authorities, config, reader, problems));
        }
        for tls in config.backend_tls() {
            let authorities = trusted.of_backends(&tls.value);
            tls.value.crl.iter().for_each(|it| revoked.add(it, &authorities, config, reader, problems));
        }
        revoked
    }

    fn add(
        &mut self,
        settings: &courser_config::Revocation,
        authorities: &[&Authorities],
        config: &Config,
        reader: &Account,
        problems: &mut Problems,
    ) {
        for file in &settings.files {
            if !self.by_file.contains_key(&file.value) {
                let lists = read(file, reader).map_err(|wrong| problems.extend(wrong)).unwrap_or_default();
                problems.extend(
                    lists.iter().filter_map(|list| overdue(file, list, settings, config.process.strict)),
                );
                self.by_file.insert(file.value.clone(), lists);
            }
            let foreign =
                self.by_file[&file.value].iter().filter(|list| list.is_signed_by(authorities) == Some(false));
            problems.extend(foreign.map(|list| {
                let message = format!(
                    "{}: the list is not signed by its authority, `{}`",
                    file.value.display(),
                    list.issuer()
                );
                let help = "get it again; an authority that has changed its key has lists of both";
                Problem::at(&file.origin, message, Some(help.into()))
            }));
        }
    }

    /// What is revoked by these settings.
    pub(crate) fn of(&self, settings: &courser_config::Revocation) -> Revocation {
        let lists = settings.files.iter().filter_map(|file| self.by_file.get(&file.value));
        Revocation {
            lists: lists.flatten().cloned().collect(),
            depth: match settings.depth {
                CrlDepth::Chain => RevocationDepth::Chain,
                CrlDepth::Leaf => RevocationDepth::Leaf,
            },
            accepts_unknown: settings.unknown == CrlFallback::Allow,
            accepts_expired: settings.expired == CrlFallback::Allow,
        }
    }
}

fn read(file: &Located<PathBuf>, reader: &Account) -> Result<Vec<RevocationList>, Problems> {
    let (place, path) = (&file.origin, &file.value);
    let bytes =
        input_file::read_up_to(path, LONGEST).map_err(|refusal| unusable(place, path, &refusal, reader))?;
    RevocationList::read(&bytes).map_err(|error| {
        let help = "openssl crl -in FILE -text -noout shows whether others can read it";
        Problem::at(place, format!("{}: {error}", path.display()), Some(help.into())).into()
    })
}

/// A warning for a list that was due for renewal, or has little time left: a third of what it was made for.
fn overdue(
    file: &Located<PathBuf>,
    list: &RevocationList,
    settings: &courser_config::Revocation,
    strict: bool,
) -> Option<Problem> {
    const HOUR: i64 = 3600;
    let (path, issuer, left) = (file.value.display(), list.issuer(), list.next_update() - now());
    if left > (list.next_update() - list.this_update()) / 3 {
        return None;
    }
    if left > 0 {
        let message = format!("{path}: the list of `{issuer}` expires in {} h", left / HOUR);
        return Some(Problem::at(&file.origin, message, Some("renew the file".to_owned())).as_warning());
    }
    let message = format!("{path}: the list of `{issuer}` expired {} h ago", -left / HOUR);
    let help = match settings.expired {
        CrlFallback::Deny => {
            "until it is renewed, every certificate of that authority is refused; `expired = \"allow\"` accepts them"
        }
        CrlFallback::Allow => "what was revoked since is accepted; renew the file",
    };
    let problem = Problem::at(&file.origin, message, Some(help.to_owned()));
    Some(if strict { problem } else { problem.as_warning() })
}
