//! What has to hold for any bytes. The fuzz targets run these functions on what they make up, the tests on the corpus.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_session::{Cache, EpochLength, FleetKeys, PolicyHash, Ticketer, UnixSeconds};
use courser_tls::{
    Authorities, HandshakePlan, Identity, RevocationList, ServerConnection, ServerTlsConfig, ServerTlsSpec,
    SessionOffer, Sessions, StapleResponse, SuiteOrder, Version,
};

const X25519: u16 = 0x001d;

struct Stage {
    config: ServerTlsConfig,
    identity: Arc<Identity>,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let lifetime = Duration::from_secs(7200);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let keys = FleetKeys::alone(EpochLength::DEFAULT, lifetime, UnixSeconds(now)).expect("in range");
        let sessions = Sessions {
            cache: Some(Arc::new(Cache::new(1 << 20, 1))),
            ticketer: Some(Arc::new(Ticketer::new(Arc::new(keys)))),
            lifetime,
        };
        let spec = ServerTlsSpec {
            versions: vec![Version::Tls12, Version::Tls13],
            suites: vec![0x1301, 0xc02b],
            groups: vec![X25519],
            tickets: 2,
            ..ServerTlsSpec::default()
        };
        let config = ServerTlsConfig::new(spec, &sessions).expect("known code points");
        let identity = courser_tls::self_signed(&["fuzz.example".to_owned()]).expect("a key can be made");
        Stage { config, identity: Arc::new(identity) }
    })
}

/// A connection that has received nothing yet.
pub(crate) fn connection() -> ServerConnection {
    let Stage { config, identity } = stage();
    let policy = PolicyHash::builder("fuzz", "fuzz").finish();
    let plan = HandshakePlan::new(Arc::clone(identity), policy, SessionOffer::Tickets);
    ServerConnection::new(config, X25519, SuiteOrder::Configured, plan).expect("the config fit")
}

/// A connection that receives `input` in pieces; the first byte is the size of a piece. It never panics, always ends,
/// consumes no more than it has, and after a failure it fails again.
pub(crate) fn server(input: &[u8]) {
    let Some((&size, bytes)) = input.split_first() else { return };
    let Stage { config, identity } = stage();
    let policy = PolicyHash::builder("fuzz", "fuzz").finish();
    let plan = HandshakePlan::new(Arc::clone(identity), policy, SessionOffer::Tickets);
    let mut connection =
        ServerConnection::new(config, X25519, SuiteOrder::Configured, plan).expect("the config fit");
    let (mut received, mut plaintext, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
    for piece in bytes.chunks(usize::from(size).max(1)) {
        received.extend_from_slice(piece);
        match connection.process(&mut received, &mut plaintext, &mut outgoing) {
            Ok(progress) => {
                assert!(progress.consumed <= received.len());
                received.drain(..progress.consumed);
            }
            Err(_) => {
                assert!(connection.process(&mut received, &mut plaintext, &mut outgoing).is_err());
                break;
            }
        }
    }
    assert!(plaintext.is_empty(), "no plaintext without the keys");
    assert!(
        connection.send(b"x", &mut received, &mut outgoing).is_err(),
        "nothing is sent before the handshake is done"
    );
}

/// A file of revocation lists: accepted or refused, and the same each time. Only one key has signed a list.
pub(crate) fn revocation_list(bytes: &[u8]) {
    let lists = RevocationList::read(bytes);
    assert_eq!(lists.as_ref().err(), RevocationList::read(bytes).as_ref().err());
    let authority = Authorities::from_pem(AUTHORITY).expect("it is committed");
    for list in lists.into_iter().flatten() {
        assert!(list.len() <= bytes.len() / 4, "an entry takes some bytes");
        let first = list.is_signed_by(&[&authority]);
        assert_eq!(list.is_signed_by(&[&authority]), first);
        let _ = (list.issuer(), list.this_update(), list.next_update());
    }
}

/// Of the lists in the corpus.
const AUTHORITY: &[u8] = include_bytes!("../../../../fuzz/corpus/revocation_list/certificate.pem");

/// A staple: read or refused, judged for a certificate, and the same each time.
pub(crate) fn staple(bytes: &[u8]) {
    static SITE: OnceLock<Identity> = OnceLock::new();
    let site = SITE.get_or_init(|| Identity::from_pem(STAPLED, STAPLED).expect("it is committed"));
    let judge = || StapleResponse::read(bytes.to_vec()).and_then(|response| response.judge(site));
    let first = judge();
    assert_eq!(first, judge());
    if let Ok(staple) = first {
        assert_eq!(site.with_staple(Some(&staple)).staple(), Some(&staple));
    }
}

/// The certificate that the staples in the corpus are about, its issuer's, and its key.
const STAPLED: &[u8] = include_bytes!("../../../../fuzz/corpus/staple/site.pem");
