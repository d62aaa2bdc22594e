//! From the first bytes to a ClientHello: is it TLS, what is asked for, what can the client do.

use courser_session::SessionId;
use courser_telemetry::{Close, CloseReason};
use courser_wire::alert;
use courser_wire::hello::ClientHello;
use courser_wire::record::{Assembler, Assembly, NotHello};

use crate::accept_proxy;
use crate::account::Offered;
use crate::buffers::Inbox;
use crate::challenges;
use crate::client::{Accepted, Client, EarlyClose, Refusal};

/// Most bytes in which a ClientHello has to end. A post-quantum one is under 2 KB; 64 KB leaves room for whatever
/// comes, and bounds what a stranger can make us hold.
const HELLO_LIMIT: usize = 64 * 1024;

/// As above, where more clients come than can be served.
const HELLO_LIMIT_IN_OVERLOAD: usize = 16 * 1024;

pub(crate) struct Classified {
    pub(crate) client: Client,
    pub(crate) received: Inbox,
    pub(crate) offer: ClientOffer,
}

/// The parts of the ClientHello that decide something.
pub(crate) struct ClientOffer {
    /// Server name in lower case.
    pub(crate) name: Option<Box<str>>,
    /// Versions: `supported_versions`, or what the legacy field implies.
    pub(crate) tls13: bool,
    pub(crate) tls12: bool,
    pub(crate) suites: Vec<u16>,
    pub(crate) groups: Vec<u16>,
    pub(crate) key_shares: Vec<u16>,
    /// `None`: the extension is absent.
    pub(crate) schemes: Option<Vec<u16>>,
    pub(crate) takes_tickets: bool,
    /// Whether it offers a TLS 1.2 ticket.
    pub(crate) ticket: bool,
    /// Whether it offers TLS 1.3 pre-shared keys.
    pub(crate) psk: bool,
    pub(crate) session_id: Option<SessionId>,
    /// Whether it is a CA that checks who has the name: it offers `acme-tls/1` and nothing else (RFC 8737, section 3).
    pub(crate) acme: bool,
}

/// Waits for the whole ClientHello and reads it.
pub(crate) async fn classify(accepted: Accepted) -> Result<Classified, Box<EarlyClose>> {
    let Accepted { mut client } = accepted;
    let mut received = Inbox::default();
    let accept_proxy = client.listener.accept_proxy.as_ref();
    if accept_proxy.is_some_and(|sources| sources.expects(client.account.client)) {
        // Boxed, because few connections come here and all would have to hold the room for it.
        let accepted = Box::pin(accept_proxy::accept_proxy(&mut client, &mut received)).await;
        if let Err((close, alert)) = accepted {
            received.discard(&client.worker.buffers);
            return Err(client.close_with(close, alert));
        }
    }
    let offer = match hello(&mut client, &mut received).await {
        Ok(offer) => offer,
        Err((close, alert)) => {
            received.discard(&client.worker.buffers);
            return Err(client.close_with(close, alert));
        }
    };
    client.account.hello_received();
    client.account.sni.clone_from(&offer.name);
    Ok(Classified { client, received, offer })
}

async fn hello(client: &mut Client, received: &mut Inbox) -> Result<ClientOffer, Refusal> {
    let limit = if client.worker.overload.is_on() { HELLO_LIMIT_IN_OVERLOAD } else { HELLO_LIMIT };
    let mut assembler = Assembler::new(limit);
    // It may have come behind a PROXY header.
    let mut is_new = !received.is_empty();
    loop {
        if !std::mem::take(&mut is_new) {
            client.read_greeting(received).await?;
        }
        match assembler.assemble(received.bytes()) {
            Ok(Assembly::Complete(body)) => return read_hello(&body, client),
            Ok(Assembly::Incomplete) => received.settle(&client.worker.buffers),
            Err(not_hello) => return Err(refusal(not_hello)),
        }
    }
}

fn refusal(what: NotHello) -> Refusal {
    let reason = match what {
        NotHello::Sslv2 => CloseReason::Sslv2Hello,
        NotHello::ZeroLengthRecord => CloseReason::ZeroLengthRecord,
        NotHello::ProxyHeader => CloseReason::UnexpectedProxyHeader,
        NotHello::OversizedRecord => CloseReason::OversizedRecord,
        NotHello::TooLong => CloseReason::HelloTooLong,
        NotHello::NotClientHello(_) | NotHello::UnexpectedType(_) | NotHello::Alert(_) => {
            CloseReason::MalformedHello
        }
        _ => CloseReason::NotTls,
    };
    let alert = what.alert().map(|description| alert::record(description).to_vec());
    (Close::with(reason, what.to_string()), alert.unwrap_or_default())
}

fn read_hello(body: &[u8], client: &mut Client) -> Result<ClientOffer, Refusal> {
    let hello = ClientHello::parse(body).map_err(|malformed| {
        let close = Close::with(CloseReason::MalformedHello, malformed.to_string());
        (close, alert::record(malformed.alert()).to_vec())
    })?;
    client.account.ech = hello.ech;
    if !client.listener.rules.is_empty() {
        client.account.offered = Some(Box::new(Offered::of(&hello)));
    }
    Ok(ClientOffer::of(&hello))
}

impl ClientOffer {
    fn of(hello: &ClientHello<'_>) -> Self {
        let tls12 = match hello.supported_versions {
            Some(versions) => versions.contains(courser_wire::hello::TLS12),
            None => hello.legacy_version >= courser_wire::hello::TLS12,
        };
        Self {
            name: hello.server_name.map(|name| name.to_ascii_lowercase().into()),
            tls13: hello.offers_tls13(),
            tls12,
            suites: hello.cipher_suites.without_grease().collect(),
            groups: hello.groups.without_grease().collect(),
            key_shares: hello.key_shares.groups().collect(),
            schemes: hello.signature_schemes.map(|schemes| schemes.iter().collect()),
            takes_tickets: hello.session_ticket.is_some(),
            ticket: hello.session_ticket.is_some_and(|ticket| !ticket.is_empty()),
            psk: !hello.psk_identities.is_empty(),
            session_id: SessionId::try_from(hello.session_id).ok(),
            acme: hello.alpn.are_only(challenges::PROTOCOL),
        }
    }
}
