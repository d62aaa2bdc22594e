//! The staples that a configuration names: each file is read once, and given to those certificates of its hosts that it is
//! about. One that cannot be sent is a warning and no error: clients do without, mostly.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use courser_config::{Config, Located, Problem, Problems};
use courser_net::account::Account;
use courser_tls::identity::Validity;
use courser_tls::{Identity, Staple, StapleError, StapleResponse};

use super::{ByFiles, Previous};
use crate::file_error::unusable;
use crate::input_file;
use crate::validity::now;

/// The longest file, bytes. An answer has one or two thousand, and every handshake that asks gets it.
const LONGEST: u64 = 16 << 10;

/// What was read, and which certificates have it. Addresses of responses and certificates stand for them: both live as long.
#[derive(Default)]
pub(super) struct Staples {
    responses: HashMap<PathBuf, Arc<Response>>,
    /// By response and certificate: to verify again takes two signatures.
    judged: HashMap<(usize, usize), Result<Staple, StapleError>>,
    /// The certificate with its staple, by the one without.
    stapled: HashMap<usize, Arc<Identity>>,
    /// Files of which nothing is sent, and why.
    pub(super) refused: Vec<(PathBuf, StapleError)>,
}

type Response = Result<StapleResponse, StapleError>;

impl Staples {
    /// Reads the files that are new or may have changed, and verifies what was not verified before.
    pub(super) fn load(
        config: &Config,
        certificates: &ByFiles,
        reader: &Account,
        previous: Option<&Previous<'_>>,
        problems: &mut Problems,
    ) -> Self {
        let known = previous.map(|previous| &previous.certificates.staples);
        let mut staples = Self::default();
        let mut places = Vec::new();
        let mut seen = HashSet::new();
        for file in config.hosts().flat_map(|host| &host.staples) {
            if !seen.insert(file.value.as_os_str()) {
                continue;
            }
            let is_current = |previous: &&Previous<'_>| !previous.outdated.contains(file.value.as_os_str());
            let kept = previous.filter(is_current).and(known);
            let kept = kept.and_then(|known| known.responses.get(&file.value)).cloned();
            match kept.map_or_else(|| read(file, reader), Ok) {
                Ok(response) => {
                    staples.responses.insert(file.value.clone(), response);
                    places.push(file);
                }
                Err(wrong) => problems.extend(wrong),
            }
        }
        let mut verdicts = HashMap::new();
        let best = staples.judge(config, certificates, known, &mut verdicts);
        for (identity, staple) in best.into_values() {
            let kept = known.and_then(|known| known.stapled.get(&address(identity)));
            let kept = kept.filter(|kept| kept.staple() == Some(&staple)).cloned();
            let stapled = kept.unwrap_or_else(|| Arc::new(identity.with_staple(Some(&staple))));
            staples.stapled.insert(address(identity), stapled);
        }
        for file in places {
            let response = &staples.responses[&file.value];
            let verdict = match response.as_ref() {
                Err(error) => Err(error.clone()),
                Ok(_) => verdicts.remove(&address(response)).unwrap_or(Err(StapleError::Foreign)),
            };
            match verdict {
                Ok(staple) => problems.extend(overdue(file, &staple)),
                Err(error) => {
                    problems.push(not_sent(file, &error, error.hint()));
                    staples.refused.push((file.value.clone(), error));
                }
            }
        }
        staples
    }

    /// The certificate as it is served.
    pub(super) fn served<'a>(&'a self, identity: &'a Arc<Identity>) -> &'a Arc<Identity> {
        self.stapled.get(&address(identity)).unwrap_or(identity)
    }

    /// Judges every response for those certificates of its hosts that it names. Returns for each certificate the staple that
    /// counts longest; `verdicts` has for each response what became of it.
    fn judge<'a>(
        &mut self,
        config: &'a Config,
        certificates: &'a ByFiles,
        known: Option<&Self>,
        verdicts: &mut HashMap<usize, Result<Staple, StapleError>>,
    ) -> HashMap<usize, (&'a Arc<Identity>, Staple)> {
        let mut best: HashMap<usize, (&Arc<Identity>, Staple)> = HashMap::new();
        for host in config.hosts() {
            for response in host.staples.iter().filter_map(|file| self.responses.get(&file.value)) {
                let Ok(read) = response.as_ref() else { continue };
                let identities = host.certificates.iter().filter_map(|files| certificates.get(files));
                for identity in identities.filter(|identity| read.may_be_for(identity)) {
                    let pair = (address(response), address(identity));
                    let before = known.and_then(|known| known.judged.get(&pair)).cloned();
                    let judge = || before.unwrap_or_else(|| read.judge(identity));
                    match self.judged.entry(pair).or_insert_with(judge) {
                        Ok(staple) => {
                            verdicts.insert(pair.0, Ok(staple.clone()));
                            let (_, longest) =
                                best.entry(pair.1).or_insert_with(|| (identity, staple.clone()));
                            if longest.not_after < staple.not_after {
                                *longest = staple.clone();
                            }
                        }
                        Err(error) => drop(verdicts.entry(pair.0).or_insert_with(|| Err(error.clone()))),
                    }
                }
            }
        }
        best
    }
}

fn address<T>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}

fn read(file: &Located<PathBuf>, reader: &Account) -> Result<Arc<Response>, Problems> {
    let bytes = input_file::read_up_to(&file.value, LONGEST)
        .map_err(|refusal| unusable(&file.origin, &file.value, &refusal, reader))?;
    Ok(Arc::new(StapleResponse::read(bytes)))
}

/// A warning for a staple that is out of its time, or has little of it left: a third.
fn overdue(file: &Located<PathBuf>, staple: &Staple) -> Option<Problem> {
    const HOUR: i64 = 3600;
    let (now, help) = (now(), "get a new one from the authority, well before the old one ends");
    match staple.validity(now) {
        Validity::Expired { seconds } => {
            Some(not_sent(file, format_args!("it has expired, {} h ago", seconds / HOUR), help))
        }
        Validity::NotYet { seconds } => {
            let why = format_args!("it counts from now in {} h only", seconds / HOUR + 1);
            Some(not_sent(file, why, "look at the clock; it is sent from then on"))
        }
        Validity::Valid if (staple.not_after - now) * 3 < staple.not_after - staple.not_before => {
            let left = (staple.not_after - now) / HOUR;
            let message = format!("{}: the staple expires in {left} h", file.value.display());
            Some(Problem::at(&file.origin, message, Some(help.to_owned())).as_warning())
        }
        Validity::Valid => None,
    }
}

fn not_sent(file: &Located<PathBuf>, why: impl Display, help: &str) -> Problem {
    let message = format!("{}: the staple is not sent: {why}", file.value.display());
    Problem::at(&file.origin, message, Some(help.to_owned())).as_warning()
}
