//! Answers to what comes over the control socket, from the parts of the running program.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use courser_session::{Cache, ClockStanding};

use crate::control::{Answered, Answers};
use crate::fleet_keys::{Kept, unix_now};
use crate::status;

/// The parts that can tell how they are.
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) started: Instant,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) fleet: Option<Kept>,
}

impl Answers for Parts {
    fn answer(&self, request: &str, out: &mut UnixStream) -> io::Result<Answered> {
        match request {
            "fleet status" => {
                serde_json::to_writer(&mut *out, &self.status())?;
                writeln!(out)?;
                Ok(Answered::Yes)
            }
            _ => Ok(Answered::Unknown),
        }
    }
}

impl Parts {
    fn status(&self) -> status::Status {
        status::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.name.clone(),
            up_s: self.started.elapsed().as_secs(),
            keys: self.fleet.as_ref().map(keys).unwrap_or_default(),
            cache: self.cache.as_deref().map(cache),
            ..status::Status::default()
        }
    }
}

fn keys(fleet: &Kept) -> Vec<status::Key> {
    let now = unix_now();
    let standings = fleet.keys.standings(now).into_iter();
    let key = |standing: courser_session::Standing| status::Key {
        fleet: standing.fleet.to_string(),
        epoch: standing.epoch,
        rolls_in_s: standing.rolls_at.0.saturating_sub(now.0),
        forward_secret: standing.forward_secret,
        clock: match standing.clock {
            ClockStanding::Agrees => "agrees",
            ClockStanding::Behind => "behind",
            ClockStanding::TooFarAhead => "too_far_ahead",
        }
        .to_owned(),
    };
    standings.map(key).collect()
}

fn cache(cache: &Cache) -> status::Cache {
    let stats = cache.stats();
    status::Cache {
        sessions: stats.entries as u64,
        bytes: stats.bytes as u64,
        capacity: stats.capacity_bytes as u64,
        evicted: stats.evicted_probation + stats.evicted_protected,
    }
}
