//! The keys that all hosts of a fleet have at one time without exchanging messages. May not read a clock, and writes
//! nothing: it returns what has to be written.
//!
//! # Two modes, the same keys
//!
//! Keys derive from a secret that rolls with every epoch (`ratchet.rs`). In **simple mode** a host has the key file, which
//! leads to every epoch. In **forward-secret mode** it has a [`FleetState`], which leads forward only. Hosts of both modes
//! understand each other, so a fleet is converted host by host.
//!
//! # Two secrets
//!
//! The first secret seals, all open. To re-key a fleet without losing a session: each host in turn from `[old]` to
//! `[old, new]`; when all have it, each from there to `[new, old]`; and after a session's lifetime to `[new]`.
//!
//! # A clock that is wrong
//!
//! * Up to [`CLOCK_SKEW`](crate::CLOCK_SKEW) from the others: nothing is lost.
//! * Further ahead: what this host seals opens nowhere else until its clock is right. Further behind: what the others seal
//!   does not open here. Either costs full handshakes. In simple mode its keys follow the clock back as well as forward.
//! * In forward-secret mode keys never go back, since what they were is gone. After a clock that was ahead, this host
//!   goes on with its newest keys until time has caught up ([`ClockStanding::Behind`]); should that be too far
//!   away, give it the state of another member. When all hosts were ahead alike, they still agree, and lose nothing.
//! * A clock that leaps more than 366 days ahead at once is not believed in forward-secret mode
//!   ([`ClockStanding::TooFarAhead`]): the keys stay where they are, and roll on when the clock is right again.

pub(crate) mod bounds;
mod live;
pub(crate) mod problem;
mod ring;
mod status;
mod striped;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::seal::{KEY_NAME_LEN, NamedKey};
use crate::{EpochLength, FleetId, FleetKey, FleetState, Lifespan, ResumptionFailure, UnixSeconds};
use live::Live;
pub use live::Source;
pub use problem::BadFleetKeys;
pub use ring::MessageSecret;
pub(crate) use ring::Purpose;
use ring::Ring;
pub use status::{ClockStatus, KeyStatus};
use striped::Striped;

/// The live secrets of a host: one, or two while its fleet is re-keyed. Shared by all workers behind an `Arc`.
pub struct FleetKeys {
    lifetime: Duration,
    /// What threads read. Never empty.
    rings: Striped<Vec<Ring>>,
    /// What the rings are made from. Locked while keys roll alone.
    live: Mutex<Vec<Live>>,
}

impl FleetKeys {
    /// The keys of `sources`, of which the first seals and all open.
    ///
    /// `lifetime` is how long after its original full handshake a session may be resumed: keys of past epochs are
    /// kept for as long, and a longer lifespan is cut. Rolls on to `now`, which takes some microseconds for each
    /// epoch since the key file was made.
    ///
    /// # Errors
    /// [`BadFleetKeys`] names the one that cannot be used, and why.
    pub fn new(sources: Vec<Source>, lifetime: Duration, now: UnixSeconds) -> Result<Self, BadFleetKeys> {
        let live = sources.into_iter().map(|source| Live::new(source, lifetime, now));
        let live = live.collect::<Result<Vec<_>, _>>()?;
        match live.as_slice() {
            [] => return Err(BadFleetKeys::None),
            [_] => {}
            [one, other] if one.state.fleet == other.state.fleet => {
                return Err(BadFleetKeys::SameFleet { fleet: one.state.fleet });
            }
            [_, _] => {}
            _ => return Err(BadFleetKeys::TooMany),
        }
        let rings = Striped::new(live.iter().map(Ring::of).collect());
        Ok(Self { lifetime, rings, live: Mutex::new(live) })
    }

    /// The keys of a host that is in no fleet: a secret of its own, forward-secret. When the clock was
    /// wrong by more than an epoch at the start, and is set right, [`advance`](Self::advance) begins with another secret.
    ///
    /// # Errors
    /// [`BadFleetKeys`] if the lifetime is out of range, or the system has no random bytes.
    pub fn alone(length: EpochLength, lifetime: Duration, now: UnixSeconds) -> Result<Self, BadFleetKeys> {
        let key = FleetKey::generate(length, now).map_err(BadFleetKeys::NoRandomness)?;
        Self::alone_from(FleetState::from_key(&key, lifetime, now)?, lifetime, now)
    }

    /// As [`alone`](Self::alone), with the secret that the same host wrote earlier. Where that does not fit the clock by
    /// more than an epoch, it begins with another secret.
    ///
    /// # Errors
    /// [`BadFleetKeys`] if the lifetime is out of range.
    pub fn alone_from(state: FleetState, lifetime: Duration, now: UnixSeconds) -> Result<Self, BadFleetKeys> {
        let live = vec![Live::alone(state, lifetime, now)?];
        let rings = Striped::new(live.iter().map(Ring::of).collect());
        Ok(Self { lifetime, rings, live: Mutex::new(live) })
    }

    /// How long after its original full handshake a session may be resumed.
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// The name of the secret that seals.
    pub fn fleet(&self) -> FleetId {
        self.rings.read()[0].fleet
    }

    /// The epoch that the sealing secret is in at `now`.
    pub fn epoch(&self, now: UnixSeconds) -> u64 {
        self.with_rings(now, |rings| rings[0].epoch)
    }

    /// The secret to seal messages with.
    pub fn sealing(&self, now: UnixSeconds) -> MessageSecret {
        let this = |rings: &[Ring]| rings[0].message(rings[0].epoch, now);
        self.with_rings(now, this).expect("a ring has the secret of its own epoch")
    }

    /// The secret to open a message with that was sealed by `fleet` in `epoch`: this epoch, or the one before or
    /// after it while clocks may disagree on which it is.
    ///
    /// # Errors
    /// [`NoKey`] if the fleet is not one of ours, or the epoch is another one.
    pub fn opening(&self, fleet: FleetId, epoch: u64, now: UnixSeconds) -> Result<MessageSecret, NoKey> {
        self.with_rings(now, |rings| {
            let ring = rings.iter().find(|ring| ring.fleet == fleet).ok_or(NoKey::OtherFleet)?;
            ring.message(epoch, now).ok_or(NoKey::UnknownEpoch)
        })
    }

    /// Rolls the keys if that is due, wipes what nothing needs any more, and gives the state texts that have to be
    /// written in place of older ones: in forward-secret mode, once for each change and once at the start.
    ///
    /// Call it every second: keys also roll when they are used, but then they are not written. A host that dies before
    /// it wrote loses nothing, since the older state leads to the newer.
    pub fn advance(&self, now: UnixSeconds) -> Vec<(FleetId, Zeroizing<String>)> {
        let mut live = self.lock();
        self.roll(&mut live, now);
        live.iter_mut().filter_map(Live::take_unwritten).collect()
    }

    /// The state of every live secret as text: for a host that joins, or to write again what could not be written.
    pub fn export(&self, now: UnixSeconds) -> Vec<(FleetId, Zeroizing<String>)> {
        let mut live = self.lock();
        self.roll(&mut live, now);
        live.iter().map(|live| (live.state.fleet, live.state.to_text())).collect()
    }

    /// Where each live secret is, the sealing one first.
    pub fn statuses(&self, now: UnixSeconds) -> Vec<KeyStatus> {
        let mut live = self.lock();
        self.roll(&mut live, now);
        live.iter().map(|live| KeyStatus::of(live, now)).collect()
    }

    /// Calls `seal` with the key that seals for `purpose`.
    pub(crate) fn seal_with<T>(
        &self,
        purpose: Purpose,
        now: UnixSeconds,
        seal: impl FnOnce(&NamedKey) -> T,
    ) -> T {
        self.with_rings(now, |rings| seal(rings[0].sealing(purpose)))
    }

    /// Calls `open` with the key of this name, if it may open at `now`.
    pub(crate) fn open_with<T>(
        &self,
        purpose: Purpose,
        name: &[u8; KEY_NAME_LEN],
        now: UnixSeconds,
        open: impl FnOnce(&NamedKey) -> Result<T, ResumptionFailure>,
    ) -> Result<T, ResumptionFailure> {
        self.with_rings(now, |rings| {
            open(
                rings
                    .iter()
                    .find_map(|ring| ring.find(purpose, name, now))
                    .ok_or(ResumptionFailure::UnknownKey)?,
            )
        })
    }

    /// `lifespan`, cut to the lifetime of sessions.
    #[must_use]
    pub fn limit(&self, lifespan: Lifespan) -> Lifespan {
        lifespan.ending_by(lifespan.created.plus(self.lifetime))
    }

    /// Calls `read` with rings that are right at `now`.
    fn with_rings<T>(&self, now: UnixSeconds, read: impl FnOnce(&[Ring]) -> T) -> T {
        {
            let rings = self.rings.read();
            if rings.iter().all(|ring| ring.serves(now)) {
                return read(&rings);
            }
        }
        read(&self.roll(&mut self.lock(), now))
    }

    /// Puts new rings in place of the old ones if anything is due, which wipes those. Gives the rings of `now`: `live` is
    /// locked, so no other thread has rolled them since.
    #[cold]
    fn roll(&self, live: &mut [Live], now: UnixSeconds) -> Arc<Vec<Ring>> {
        let mut changed = false;
        for live in live.iter_mut() {
            changed |= live.advance(now);
        }
        if changed {
            return self.rings.replace(live.iter().map(Ring::of).collect());
        }
        Arc::clone(&self.rings.read())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FleetKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fleets: Vec<_> = self.rings.read().iter().map(|ring| (ring.fleet, ring.epoch)).collect();
        f.debug_struct("FleetKeys").field("fleets", &fleets).finish_non_exhaustive()
    }
}

/// Why there is no secret for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// The message is of another fleet.
    OtherFleet,
    /// The message is of our fleet, but of an epoch that no right clock can be in.
    UnknownEpoch,
}
