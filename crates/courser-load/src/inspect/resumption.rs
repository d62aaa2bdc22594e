//! What takes whole handshakes: application protocols, resumption as it really happens, early data.

use courser_tls_client::{ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ResumptionMethod};

use super::dialogue::{self, Dialogue};
use super::negotiation::Negotiated;
use super::prober::Prober;
use crate::channel::HTTP2;

/// How one kind of resumption went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumption {
    /// Its kind.
    pub by: ResumptionMethod,
    /// The version it was tried in, code point.
    pub version: u16,
    /// Connections that were to resume the session of the one before.
    pub attempts: u32,
    /// Those in which the server had given something to resume with.
    pub offered: u32,
    /// Those that the server resumed.
    pub resumed: u32,
}

/// What becomes of early data (RFC 8446, section 4.2.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// The server's tickets do not allow it.
    NotAllowed,
    /// They do, and it was thrown away.
    Refused,
    /// They do, and it was taken.
    Accepted,
}

/// The terms of each engine of this build that can offer this, the likeliest to succeed first.
pub(super) fn terms_for(offer: &ClientTlsSpec) -> impl Iterator<Item = ClientTlsConfig> {
    let engines = if offer.versions == [TLS13] {
        [Engine::Real, Engine::Openssl]
    } else {
        [Engine::Openssl, Engine::Real]
    };
    engines.into_iter().filter_map(|engine| ClientTlsConfig::new(engine, offer).ok())
}

/// Those of `protocols` that the server takes.
pub(super) fn protocols(prober: &mut Prober, versions: &[Negotiated], protocols: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut left, mut taken) = (protocols.to_vec(), Vec::new());
    let newest: Vec<u16> = versions.iter().map(|found| found.version).take(1).collect();
    while !left.is_empty() {
        let offer =
            ClientTlsSpec { versions: newest.clone(), alpn: left.clone(), ..ClientTlsSpec::default() };
        let Some((_, first)) = first_to_succeed(prober, &offer) else { break };
        let Some(place) = first.facts.alpn.and_then(|alpn| left.iter().position(|one| *one == alpn)) else {
            break;
        };
        taken.push(left.remove(place));
    }
    taken
}

/// Whether the server speaks HTTP/2 where it is agreed on.
pub(super) fn speaks_http2(prober: &mut Prober, versions: &[Negotiated]) -> Option<bool> {
    let newest = versions.iter().map(|found| found.version).take(1).collect();
    let offer = ClientTlsSpec { versions: newest, alpn: vec![HTTP2.to_vec()], ..ClientTlsSpec::default() };
    terms_for(&offer).find_map(|terms| dialogue::speaks_http2(prober, &terms))
}

/// Tries each kind of resumption `attempts` times, each time with what the connection before has brought; and counts
/// the tickets after a full TLS 1.3 handshake.
pub(super) fn try_all(
    prober: &mut Prober,
    versions: &[Negotiated],
    attempts: u32,
) -> (Vec<Resumption>, Option<u32>) {
    let newest_old = versions.iter().map(|found| found.version).find(|version| *version < TLS13);
    let new = versions.iter().map(|found| found.version).find(|version| *version == TLS13);
    let kinds = [
        (newest_old, Resume::SessionId, ResumptionMethod::SessionId),
        (newest_old, Resume::Ticket, ResumptionMethod::Ticket),
        (new, Resume::Ticket, ResumptionMethod::Psk),
    ];
    let (mut tried, mut tickets) = (Vec::new(), None);
    for (version, resume, by) in kinds {
        let Some(version) = version else { continue };
        let offer =
            ClientTlsSpec { versions: vec![version], resume, max_tickets: 1, ..ClientTlsSpec::default() };
        let Some((terms, first)) = first_to_succeed(prober, &offer) else { continue };
        tickets = if version == TLS13 { Some(first.tickets) } else { tickets };
        tried.push(try_one(
            prober,
            &terms,
            first.sessions,
            Resumption { by, version, attempts, offered: 0, resumed: 0 },
        ));
    }
    (tried, tickets)
}

/// Sends a request as early data with the ticket of an earlier connection; none if TLS 1.3 is not to be had.
pub(super) fn early_data(prober: &mut Prober, versions: &[Negotiated]) -> Option<EarlyData> {
    let found = versions.iter().find(|found| found.version == TLS13)?;
    // A HelloRetryRequest throws early data away: the share has to be of a group that the server takes.
    let mut offer = ClientTlsSpec {
        versions: vec![TLS13],
        resume: Resume::Ticket,
        early_data: true,
        ..ClientTlsSpec::default()
    };
    offer.groups = found.groups.iter().copied().filter(|group| REAL_GROUPS.contains(group)).collect();
    let (terms, first) = first_to_succeed(prober, &offer)?;
    let second = dialogue::hold(prober, &terms, first.sessions)?;
    Some(match second.facts.early_data {
        None => EarlyData::NotAllowed,
        Some(false) => EarlyData::Refused,
        Some(true) => EarlyData::Accepted,
    })
}

fn try_one(
    prober: &mut Prober,
    terms: &ClientTlsConfig,
    mut sessions: ClientSessions,
    mut so_far: Resumption,
) -> Resumption {
    for _ in 0..so_far.attempts {
        let Some(held) = dialogue::hold(prober, terms, sessions) else {
            sessions = ClientSessions::default();
            continue;
        };
        so_far.offered += u32::from(held.facts.offered.is_some());
        so_far.resumed += u32::from(held.facts.resumed);
        sessions = held.sessions;
    }
    so_far
}

fn first_to_succeed(prober: &mut Prober, offer: &ClientTlsSpec) -> Option<(ClientTlsConfig, Dialogue)> {
    terms_for(offer).find_map(|terms| {
        let held = dialogue::hold(prober, &terms, ClientSessions::default())?;
        Some((terms, held))
    })
}

const TLS13: u16 = 0x0304;

/// Groups of the engine that has early data: X25519, P-256, P-384, X25519MLKEM768.
const REAL_GROUPS: [u16; 4] = [0x001d, 0x0017, 0x0018, 0x11ec];
