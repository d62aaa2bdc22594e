//! What the handshake will be told about sessions: the policy that one has to come from, and how the client could name
//! one. Sessions are looked up in this host's own memory, from within the handshake; nothing waits.

use std::sync::Arc;

use courser_telemetry::Resumption;
use courser_tls::{HandshakePlan, SessionOffer, Version};

use crate::certificate::{Choice, Chosen};
use crate::classify::Offer;
use crate::connection::Client;
use crate::settings::Host;

/// A connection ready for its handshake.
pub(crate) struct Primed {
    pub(crate) client: Client,
    pub(crate) received: Vec<u8>,
    pub(crate) host: Arc<Host>,
    pub(crate) choice: Choice,
    pub(crate) plan: HandshakePlan,
    /// What a resumption would be by, when the client offers one.
    pub(crate) offered: Option<Resumption>,
}

/// Makes the plan of the handshake.
pub(crate) fn prime(chosen: Chosen) -> Primed {
    let Chosen { client, received, offer, host, choice } = chosen;
    let by = session_offer(&offer, choice.version);
    let plan = HandshakePlan::new(Arc::clone(&choice.identity), host.policy, by);
    let offered = offered(&offer, choice.version);
    Primed { client, received, host, choice, plan, offered }
}

fn session_offer(offer: &Offer, version: Version) -> SessionOffer {
    if version == Version::Tls13 || offer.takes_tickets {
        SessionOffer::Tickets
    } else {
        SessionOffer::SessionId
    }
}

fn offered(offer: &Offer, version: Version) -> Option<Resumption> {
    match version {
        Version::Tls13 => offer.psk.then_some(Resumption::Psk),
        Version::Tls12 if offer.ticket => Some(Resumption::Ticket),
        Version::Tls12 => (offer.session_id && !offer.takes_tickets).then_some(Resumption::SessionId),
    }
}
