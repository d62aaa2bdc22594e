//! Files, tickets and sealed sessions, kept: hosts of different releases must understand each other. `golden/make.py`
//! makes the same with another library (pyca/cryptography, on OpenSSL).

use std::sync::Arc;

use courser_session::{
    FleetKey, FleetKeys, FleetState, SharedSession, Source, State, Ticketer, UnixSeconds, Vault,
};

use crate::{HOUR, NOW, policy, two_hours};

const KEY: &str = include_str!("golden/fleet.key");
const STATE: &str = include_str!("golden/fleet.state");
const MESSAGE_SECRET: &str = include_str!("golden/message_secret_v1.hex");
const TICKET: &str = include_str!("golden/ticket_v1.hex");
const VALUE: &str = include_str!("golden/value_v1.hex");
const NAME: &str = include_str!("golden/name_v1.hex");
const SESSIONS: &str = include_str!("golden/sessions_v1.hex");

const LAST_SECOND: UnixSeconds = UnixSeconds(NOW.0 + 7199);
const NONCE: [u8; 12] = [7; 12];

/// The keys of the kept files, in either mode.
fn kept_keys() -> [Arc<FleetKeys>; 2] {
    let simple = Source::Simple(FleetKey::parse(KEY).unwrap());
    let ratcheted = Source::Ratcheted(FleetState::parse(STATE).unwrap());
    [simple, ratcheted].map(|source| Arc::new(FleetKeys::new(vec![source], 2 * HOUR, NOW).unwrap()))
}

fn session() -> SharedSession {
    SharedSession {
        id: [9; 32][..].try_into().unwrap(),
        policy: policy("example.org"),
        lifespan: two_hours(NOW),
        state: State::from(&b"state"[..]),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    let text = text.trim();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn files_are_written_as_they_were() {
    let key = FleetKey::parse(KEY).unwrap();
    assert_eq!(*key.to_text(), KEY);
    assert_eq!(*FleetState::parse(STATE).unwrap().to_text(), STATE);
    assert_eq!(*FleetState::from_key(&key, 2 * HOUR, NOW).unwrap().to_text(), STATE);
}

#[test]
fn what_is_sealed_has_the_form_that_it_had() {
    for keys in kept_keys() {
        assert_eq!(hex(keys.sealing(NOW).secret.as_bytes()), MESSAGE_SECRET.trim());
        let (ticketer, vault) = (Ticketer::new(Arc::clone(&keys)), Vault::new(keys));
        let ticket = ticketer.seal(&policy("example.org"), two_hours(NOW), b"state", NONCE, NOW).unwrap();
        assert_eq!(hex(&ticket), TICKET.trim());
        assert_eq!(hex(&vault.seal(&session(), NONCE, NOW).unwrap()), VALUE.trim());
        let mut file = Vault::FILE_HEADER.to_vec();
        vault.append(&mut file, &session(), NONCE, NOW);
        assert_eq!(hex(&file), SESSIONS.trim());
    }
    assert_eq!(hex(&Vault::name(&session().id)), NAME.trim());
}

#[test]
fn what_was_kept_opens() {
    for keys in kept_keys() {
        let (ticketer, vault) = (Ticketer::new(Arc::clone(&keys)), Vault::new(keys));
        let opened = ticketer.open(&policy("example.org"), &bytes(TICKET), LAST_SECOND).unwrap();
        assert_eq!((&opened.state[..], opened.lifespan), (&b"state"[..], two_hours(NOW)));
        let value = vault.open(&session().id, &bytes(VALUE), LAST_SECOND).unwrap();
        let saved = vault.read(&bytes(SESSIONS)[..], LAST_SECOND).next().unwrap();
        for opened in [value, saved] {
            assert_eq!((opened.id, opened.policy), (session().id, session().policy));
            assert_eq!((opened.lifespan, &opened.state[..]), (session().lifespan, &b"state"[..]));
        }
    }
}
