//! What the key exchange X25519MLKEM768 costs a full handshake, next to X25519 alone: its bytes, which are counted, and its
//! time, which is measured.

use std::time::Duration;

use courser_stats::ConfidenceInterval;
use courser_stats::confidence;
use courser_tls_client::{ClientTlsConfig, ClientTlsSpec};

use super::Options;
use super::dialogue::{self, Exchanged, HandshakeBytes};
use super::negotiation::Negotiated;
use super::prober::Prober;
use super::resumption::terms_for;

/// X25519MLKEM768 next to X25519, in full TLS 1.3 handshakes with a share of one group each.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PostQuantum {
    /// Bytes of a handshake with X25519MLKEM768.
    pub hybrid: HandshakeBytes,
    /// Bytes of a handshake with X25519.
    pub classical: HandshakeBytes,
    /// Of the time; none where too few handshakes came about.
    pub time: Option<TimeOfBoth>,
}

/// How long handshakes take: from the making of the client's key share to its Finished, without the TCP handshake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeOfBoth {
    /// Handshakes of each kind; they take turns.
    pub pairs: usize,
    /// Median with X25519MLKEM768, seconds.
    pub hybrid: f64,
    /// Median with X25519, seconds.
    pub classical: f64,
    /// Median of what the one takes longer than its neighbour with X25519, seconds.
    pub longer: f64,
    /// 95 % confidence interval of [`Self::longer`].
    pub interval: ConfidenceInterval,
}

impl PostQuantum {
    /// How many bytes more the two hellos have.
    pub fn more_bytes(&self) -> usize {
        let hellos = |bytes: &HandshakeBytes| bytes.client_hello + bytes.server_hello;
        hellos(&self.hybrid).saturating_sub(hellos(&self.classical))
    }

    /// [`Self::more_bytes`] as a share of a handshake with X25519MLKEM768.
    pub fn share_of_bytes(&self) -> f64 {
        self.more_bytes() as f64 / self.hybrid.all.max(1) as f64
    }
}

impl TimeOfBoth {
    /// Whether handshakes with X25519MLKEM768 were seen to take longer, or less.
    pub fn is_seen(&self) -> bool {
        !self.interval.contains(0.0)
    }

    /// [`Self::longer`] and its interval as shares of a handshake with X25519MLKEM768.
    pub fn share(&self) -> (f64, ConfidenceInterval) {
        let of = |seconds: f64| seconds / self.hybrid;
        (of(self.longer), ConfidenceInterval { low: of(self.interval.low), high: of(self.interval.high) })
    }
}

/// Handshakes with either group, in turns. None where the server has not both in TLS 1.3, or handshakes with them fail.
pub(super) fn post_quantum(
    prober: &mut Prober,
    versions: &[Negotiated],
    options: &Options,
) -> Option<PostQuantum> {
    let found = versions.iter().find(|found| found.version == TLS13)?;
    if options.pairs == 0 || [HYBRID, CLASSICAL].iter().any(|group| !found.groups.contains(group)) {
        return None;
    }
    let (hybrid, classical) = (Terms::with(HYBRID)?, Terms::with(CLASSICAL)?);
    // The first of each warms both sides up.
    hybrid.shake_hands(prober)?;
    classical.shake_hands(prober)?;
    let mut pairs: Vec<[Exchanged; 2]> = Vec::new();
    let mut taken = Duration::ZERO;
    while pairs.len() < options.pairs && (pairs.len() < FEWEST || taken < LONGEST) {
        // Whoever comes first in one pair is second in the next.
        let pair = if pairs.len().is_multiple_of(2) {
            hybrid.shake_hands(prober).zip(classical.shake_hands(prober))
        } else {
            classical
                .shake_hands(prober)
                .zip(hybrid.shake_hands(prober))
                .map(|(second, first)| (first, second))
        };
        // It may count connections, and have counted enough of ours.
        let Some((first, second)) = pair else { break };
        taken += first.time + second.time;
        pairs.push([first, second]);
    }
    let middle = |kind: usize| middle(&pairs.iter().map(|pair| pair[kind].bytes).collect::<Vec<_>>());
    Some(PostQuantum { hybrid: middle(0)?, classical: middle(1)?, time: time(&pairs) })
}

/// What a client offers that has one group.
struct Terms {
    config: ClientTlsConfig,
    group: u16,
}

impl Terms {
    fn with(group: u16) -> Option<Self> {
        let offer = ClientTlsSpec { versions: vec![TLS13], groups: vec![group], ..ClientTlsSpec::default() };
        terms_for(&offer).next().map(|config| Self { config, group })
    }

    fn shake_hands(&self, prober: &mut Prober) -> Option<Exchanged> {
        let exchanged = dialogue::exchange(prober, &self.config)?;
        // A second ClientHello has nothing to do with the group.
        (exchanged.group == Some(self.group) && !exchanged.retried).then_some(exchanged)
    }
}

/// Each by itself.
fn middle(all: &[HandshakeBytes]) -> Option<HandshakeBytes> {
    let of = |field: fn(&HandshakeBytes) -> usize| {
        let mut values: Vec<usize> = all.iter().map(field).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    Some(HandshakeBytes {
        client_hello: of(|bytes| bytes.client_hello)?,
        server_hello: of(|bytes| bytes.server_hello)?,
        all: of(|bytes| bytes.all)?,
    })
}

/// What disturbs a machine or a path for a moment hits both of a pair: differences within pairs tell more than medians do.
fn time(pairs: &[[Exchanged; 2]]) -> Option<TimeOfBoth> {
    if pairs.len() < FEWEST {
        return None;
    }
    let seconds = |kind: usize| pairs.iter().map(|pair| pair[kind].time.as_secs_f64()).collect::<Vec<_>>();
    let (hybrid, classical) = (seconds(0), seconds(1));
    let differences: Vec<f64> = hybrid.iter().zip(&classical).map(|(one, other)| one - other).collect();
    Some(TimeOfBoth {
        pairs: pairs.len(),
        interval: confidence::median(&differences, SEED)?,
        hybrid: median(hybrid)?,
        classical: median(classical)?,
        longer: median(differences)?,
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(f64::midpoint(values[(values.len() - 1) / 2], upper))
}

const TLS13: u16 = 0x0304;
const HYBRID: u16 = 0x11ec;
const CLASSICAL: u16 = 0x001d;

/// Below that an interval of differences is too wide to say anything.
const FEWEST: usize = 8;

/// Handshakes with a far server take long; then [`FEWEST`] have to do.
const LONGEST: Duration = Duration::from_secs(3);

/// Of resampling: any will do, the same one gives the same interval.
const SEED: u64 = 768;

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs in which the first takes so many microseconds longer, with what disturbs both.
    fn pairs(longer: u64, noise: u64) -> Vec<[Exchanged; 2]> {
        let bytes = HandshakeBytes { client_hello: 1, server_hello: 1, all: 2 };
        let of = |us| Exchanged { bytes, time: Duration::from_micros(us), group: None, retried: false };
        (0..30_u64)
            .map(|n| [of(900 + n * 40 + longer + n * 7 % 5 * noise), of(900 + n * 40 + n * 3 % 5 * noise)])
            .collect()
    }

    #[test]
    fn what_disturbs_both_of_a_pair_hides_nothing() {
        let seen = time(&pairs(50, 5)).unwrap();
        assert!(seen.is_seen() && seen.interval.contains(50e-6), "{seen:?}");
        assert!((40e-6..60e-6).contains(&seen.longer) && seen.hybrid > seen.classical, "{seen:?}");
        let (share, interval) = seen.share();
        assert!(interval.contains(share) && (0.02..0.05).contains(&share), "{seen:?}");
    }

    #[test]
    fn no_difference_is_not_seen_and_few_pairs_say_nothing() {
        let same = time(&pairs(0, 40)).unwrap();
        assert!(!same.is_seen(), "{same:?}");
        assert_eq!(time(&pairs(50, 5)[..FEWEST - 1]), None);
    }

    #[test]
    fn the_share_of_bytes_is_that_of_what_is_more() {
        let bytes = |client_hello, server_hello, all| HandshakeBytes { client_hello, server_hello, all };
        let found =
            PostQuantum { hybrid: bytes(1400, 1200, 4000), classical: bytes(200, 100, 1700), time: None };
        assert_eq!((found.more_bytes(), found.share_of_bytes()), (2300, 0.575));
    }
}
