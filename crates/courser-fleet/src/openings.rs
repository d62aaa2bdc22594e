//! How many messages are opened in vain. May not ask who seems to have sent them: a source address is as easily forged
//! as the rest, and a budget for each would be the forger's to use up in a peer's name.
//!
//! An attempt takes a token, and gives it back if the message was a peer's and new. So peers pay nothing, and the time
//! that forgeries and recordings cost has a bound. When there are more of them than that, whatever comes has the same
//! chance to be opened: peers still get through with the share of messages that are, and sessions that do not arrive are
//! pulled.

use crate::bucket::{Bucket, Rate};
use crate::refusal::Refusal;

/// Attempts that may fail.
pub(crate) struct Openings {
    /// Under keys that have opened something: only who listens on the wire can name one, since a start has 64 random
    /// bits.
    known: Bucket,
    /// Under others, which are derived first. Kept apart, so that who does not listen cannot use up the former.
    unknown: Bucket,
}

impl Openings {
    pub(crate) fn new() -> Self {
        Self { known: Bucket::full(KNOWN, 0), unknown: Bucket::full(UNKNOWN, 0) }
    }

    /// Takes a token for an attempt under a key that is known, or not.
    pub(crate) fn take(&mut self, is_known: bool, mono: u64) -> Result<(), Refusal> {
        let (bucket, rate) = self.bucket(is_known);
        if bucket.take(1, rate, mono) { Ok(()) } else { Err(Refusal::TooManyForged) }
    }

    /// The attempt was not in vain.
    pub(crate) fn return_token(&mut self, is_known: bool) {
        let (bucket, rate) = self.bucket(is_known);
        bucket.give_back(1, rate);
    }

    fn bucket(&mut self, is_known: bool) -> (&mut Bucket, Rate) {
        if is_known { (&mut self.known, KNOWN) } else { (&mut self.unknown, UNKNOWN) }
    }
}

/// An attempt takes one to two microseconds: about a tenth of a core.
const KNOWN: Rate = Rate { per_second: 50_000, burst: 5000 };
/// With the derivation of the key it takes about five: as much.
const UNKNOWN: Rate = Rate { per_second: 10_000, burst: 1000 };
