//! A session on its way to another host, a store or a disk. May not decide whether it is welcome there.

use crate::{Lifespan, PolicyHash, SessionId, State, UnixSeconds};

/// A session with all that another host has to know of it.
#[derive(Clone, Debug)]
pub struct SharedSession {
    /// Its name.
    pub id: SessionId,
    /// What it is bound to.
    pub policy: PolicyHash,
    /// Its original lifespan.
    pub lifespan: Lifespan,
    /// Its state; at most 65,535 bytes travel.
    pub state: State,
}

/// What every session takes beside its ID and its state: their lengths, the policy, two times.
const FIXED_LEN: usize = 1 + 32 + 8 + 8 + 2;

impl SharedSession {
    /// How many bytes [`encode`](Self::encode) appends.
    pub fn encoded_len(&self) -> usize {
        FIXED_LEN + self.id.as_bytes().len() + self.state.len()
    }

    /// Appends: length of the ID (1 byte), ID, policy hash (32), created (8, big endian), expires (8), length of the
    /// state (2), state. The bytes hold the session's secret: reserve the room first, and wipe them after use. Appends
    /// nothing and says so when the state is too long to travel.
    pub fn encode(&self, out: &mut Vec<u8>) -> bool {
        let Ok(state_len) = u16::try_from(self.state.len()) else { return false };
        let id = self.id.as_bytes();
        out.push(u8::try_from(id.len()).expect("a session ID has at most 32 bytes"));
        out.extend_from_slice(id);
        out.extend_from_slice(self.policy.as_bytes());
        out.extend_from_slice(&self.lifespan.created.0.to_be_bytes());
        out.extend_from_slice(&self.lifespan.expires.0.to_be_bytes());
        out.extend_from_slice(&state_len.to_be_bytes());
        out.extend_from_slice(&self.state);
        true
    }

    /// Takes one session off the front of `bytes`; `None` if they do not begin with a whole one.
    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (&id_len, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(id_len))?;
        let (policy, rest) = rest.split_first_chunk::<32>()?;
        let (created, rest) = seconds(rest)?;
        let (expires, rest) = seconds(rest)?;
        let (state_len, rest) = rest.split_first_chunk::<2>()?;
        let (state, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*state_len)))?;
        let id = SessionId::try_from(id).ok()?;
        *bytes = rest;
        let lifespan = Lifespan { created, expires };
        Some(Self { id, policy: PolicyHash::from_bytes(*policy), lifespan, state: State::from(state) })
    }
}

fn seconds(bytes: &[u8]) -> Option<(UnixSeconds, &[u8])> {
    let (seconds, rest) = bytes.split_first_chunk::<8>()?;
    Some((UnixSeconds(u64::from_be_bytes(*seconds)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(state: Vec<u8>) -> SharedSession {
        SharedSession {
            id: SessionId::try_from(&[7; 32][..]).unwrap(),
            policy: PolicyHash::builder("public", "example.org").finish(),
            lifespan: Lifespan { created: UnixSeconds(1_000), expires: UnixSeconds(2_000) },
            state: State::from(state),
        }
    }

    #[test]
    fn what_was_encoded_comes_back_and_the_rest_is_left() {
        let session = session(vec![9; 200]);
        let mut bytes = Vec::new();
        assert!(session.encode(&mut bytes));
        assert_eq!(bytes.len(), session.encoded_len());
        bytes.push(42);
        let mut rest = &bytes[..];
        let back = SharedSession::decode(&mut rest).unwrap();
        assert_eq!(rest, [42]);
        assert_eq!((back.id, back.policy, back.lifespan), (session.id, session.policy, session.lifespan));
        assert_eq!(&back.state[..], &session.state[..]);
    }

    #[test]
    fn a_part_of_a_session_is_none() {
        let mut bytes = Vec::new();
        assert!(session(vec![9; 20]).encode(&mut bytes));
        for len in 0..bytes.len() {
            let mut part = &bytes[..len];
            assert!(SharedSession::decode(&mut part).is_none(), "{len} bytes");
            assert_eq!(part.len(), len, "nothing is taken");
        }
        bytes[0] = 33;
        assert!(SharedSession::decode(&mut &bytes[..]).is_none(), "no ID has 33 bytes");
    }

    #[test]
    fn a_state_that_is_too_long_does_not_travel() {
        let mut bytes = Vec::new();
        assert!(!session(vec![9; 65_536]).encode(&mut bytes));
        assert!(bytes.is_empty());
    }
}
