//! What has to hold for any bytes. The fuzz targets run these functions on what they make up, the tests on the corpus.

use std::sync::Arc;
use std::time::Duration;

use courser_session::{
    EpochLength, FleetKey, FleetKeys, FleetState, Lifespan, PolicyHash, SessionId, SharedSession, Source,
    State, Ticketer, UnixSeconds, Vault,
};

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
const LIFETIME: Duration = Duration::from_secs(7200);

/// A key file: what can be read is written alike, and its keys work if the clock allows it.
pub(crate) fn fleet_key(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match FleetKey::parse(text) {
        Ok(key) => {
            let written = key.to_text();
            assert_eq!(FleetKey::parse(&written).expect("it was written by us").to_text(), written);
            work(Source::Simple(key));
        }
        Err(error) => says_little(&error),
    }
}

/// A state file: the same.
pub(crate) fn fleet_state(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match FleetState::parse(text) {
        Ok(state) => {
            let written = state.to_text();
            assert_eq!(FleetState::parse(&written).expect("it was written by us").to_text(), written);
            work(Source::Ratcheted(state));
        }
        Err(error) => says_little(&error),
    }
}

/// What a store or a disk gives: none of it opens, since nobody else has the key; our own comes through whatever
/// follows it.
pub(crate) fn vault(bytes: &[u8]) {
    let vault =
        Vault::new(Arc::new(FleetKeys::alone(EpochLength::DEFAULT, LIFETIME, NOW).expect("in range")));
    let session = session(bytes);
    assert!(vault.open(&session.id, bytes, NOW).is_err());
    assert_eq!(vault.read(bytes, NOW).count(), 0);
    // With our own head, so that the key is found and the sealed part is reached.
    let Some(value) = vault.seal(&session, [0; 12], NOW) else { return };
    assert_eq!(vault.open(&session.id, &value, NOW).expect("it is ours").state[..], session.state[..]);
    assert!(vault.open(&session.id, &[&value[..29], bytes].concat(), NOW).is_err());
    let mut file = Vault::FILE_HEADER.to_vec();
    vault.append(&mut file, &session, [0; 12], NOW);
    file.extend_from_slice(bytes);
    let mut saved = vault.read(&file[..], NOW);
    assert_eq!(saved.by_ref().count(), 1);
    assert_eq!(saved.counts().taken, 1);
    assert_eq!(saved.counts().damaged + saved.counts().over == 0, bytes.is_empty());
}

fn work(source: Source) {
    let Ok(keys) = FleetKeys::new(vec![source], LIFETIME, NOW) else { return };
    let ticketer = Ticketer::new(Arc::new(keys));
    let (policy, lifespan) = (PolicyHash::builder("fuzz", "fuzz").finish(), Lifespan::new(NOW, LIFETIME));
    let ticket = ticketer.seal(&policy, lifespan, b"state", [0; 12], NOW).expect("it lives");
    assert_eq!(ticketer.open(&policy, &ticket, NOW).expect("it is ours").state, b"state");
}

/// An error goes to a log, where nothing of a secret may stand.
fn says_little(error: &dyn std::error::Error) {
    assert!(error.to_string().len() < 300, "{error}");
}

fn session(state: &[u8]) -> SharedSession {
    SharedSession {
        id: SessionId::try_from(&[7; 32][..]).expect("32 bytes are an ID"),
        policy: PolicyHash::builder("fuzz", "fuzz").finish(),
        lifespan: Lifespan::new(NOW, LIFETIME),
        state: State::from(state),
    }
}
