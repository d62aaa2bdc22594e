//! The plan of the handshake: the policy that a session has to come from, and how the client could name one. The handshake
//! looks sessions up in this host's own memory. One that may be on another host is fetched before the handshake begins,
//! within a few milliseconds: from within it nothing could wait.

use std::sync::Arc;

use courser_session::{SessionId, UnixSeconds};
use courser_sharing::RemoteSessions;
use courser_telemetry::Resumption;
use courser_tls::{HandshakePlan, SessionOffer, Version};
use courser_wire::hello::ClientHello;
use courser_wire::record::{self, Assembly};

use crate::buffers::Inbox;
use crate::certificate::{Selected, Selection};
use crate::classify::ClientOffer;
use crate::client::Client;
use crate::settings::VirtualHost;

pub(crate) struct Planned {
    pub(crate) client: Client,
    pub(crate) received: Inbox,
    pub(crate) host: Arc<VirtualHost>,
    pub(crate) selection: Selection,
    pub(crate) plan: HandshakePlan,
    /// What a resumption would be by, when the client offers one.
    pub(crate) offered: Option<Resumption>,
}

/// Makes the plan of the handshake, and fetches the session that it may need.
pub(crate) async fn plan_resumption(selected: Selected) -> Planned {
    let Selected { client, received, offer, host, selection } = selected;
    let by = session_offer(&offer, selection.version);
    let mut plan = HandshakePlan::new(Arc::clone(&selection.identity), host.policy, by);
    if let Some((remote, id)) = lacking(&client, &offer, by, &host) {
        // Boxed, because few connections come here and all would have to hold the room for it.
        let fetched = Box::pin(remote.look_up(id, client.address(), &client.worker.counters)).await;
        if let Err(failure) = fetched {
            plan.record_remote_failure(failure);
        }
    }
    let offered = offered(&offer, selection.version);
    Planned { client, received, host, selection, plan, offered }
}

/// Whether the client has been here by `until`: it offers a session of this host that was made by then, in a ticket that opens or
/// by an ID that is there. Reads its ClientHello once more, so that only overload asks.
pub(crate) fn has_session(received: &mut Inbox, host: &VirtualHost, until: UnixSeconds) -> bool {
    let bytes = received.bytes();
    let Ok(Assembly::Complete(hello)) = record::assemble(bytes, bytes.len()) else { return false };
    let Ok(hello) = ClientHello::parse(&hello) else { return false };
    let tickets = hello.psk_identities.iter().take(MOST_TICKETS).chain(hello.session_ticket);
    let id = SessionId::try_from(hello.session_id).ok();
    host.tls.has_session(&host.policy, tickets, id.as_ref(), until)
}

/// Tickets of a client that are looked at: those that clients offer, and no more work for others.
const MOST_TICKETS: usize = 2;

/// The session that the client names by an ID which means something, if this host has not got it and others may.
///
/// A client that offers TLS 1.3 puts a random ID into each hello unless it has a session of TLS 1.2 (RFC 8446, section
/// 4.1.2); the two look alike, and looking up the random ones would burden every host with every handshake.
fn lacking<'a>(
    client: &'a Client,
    offer: &ClientOffer,
    by: SessionOffer,
    host: &VirtualHost,
) -> Option<(&'a RemoteSessions, SessionId)> {
    let (id, remote) = (offer.session_id?, client.worker.remote_sessions.as_ref()?);
    let random = offer.tls13 || (by == SessionOffer::Tickets && remote.gives_tickets());
    (!random && remote.lacks(&id, &host.policy)).then_some((remote, id))
}

fn session_offer(offer: &ClientOffer, version: Version) -> SessionOffer {
    if version == Version::Tls13 || offer.takes_tickets {
        SessionOffer::Tickets
    } else {
        SessionOffer::SessionId
    }
}

fn offered(offer: &ClientOffer, version: Version) -> Option<Resumption> {
    match version {
        Version::Tls13 => offer.psk.then_some(Resumption::Psk),
        Version::Tls12 if offer.ticket => Some(Resumption::Ticket),
        Version::Tls12 => {
            (offer.session_id.is_some() && !offer.takes_tickets).then_some(Resumption::SessionId)
        }
    }
}
