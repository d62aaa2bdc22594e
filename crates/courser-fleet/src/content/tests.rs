//! What is written comes back, and what is read never panics.

use proptest::prelude::*;

use super::*;
use crate::message::{HEADER_LEN, TIME_LEN};

/// What stands after the time in a draft that `put` wrote.
fn written(kind: Kind, put: impl FnOnce(&mut Draft) -> bool) -> Vec<u8> {
    let mut draft = Draft::new(kind, 65_507);
    assert!(put(&mut draft));
    draft.bytes[HEADER_LEN + TIME_LEN..].to_vec()
}

fn ids() -> impl Strategy<Value = SessionId> {
    let bytes = proptest::collection::vec(any::<u8>(), 1..=32);
    bytes.prop_map(|bytes| SessionId::try_from(&bytes[..]).unwrap())
}

fn any_sessions() -> impl Strategy<Value = Vec<SharedSession>> {
    let state = proptest::collection::vec(any::<u8>(), 0..300);
    let session = (ids(), 0_u8..3, any::<[u64; 2]>(), state).prop_map(|(id, policy, times, state)| {
        let [created, expires] = times.map(UnixSeconds);
        let (policy, lifespan) = (PolicyHash::from_bytes([policy; 32]), Lifespan { created, expires });
        SharedSession { id, policy, lifespan, state: State::from(state) }
    });
    proptest::collection::vec(session, 0..40)
}

fn is_same(a: &SharedSession, b: &SharedSession) -> bool {
    (a.id, a.policy, a.lifespan) == (b.id, b.policy, b.lifespan) && a.state[..] == b.state[..]
}

proptest! {
    #[test]
    fn sessions_come_back(sessions in any_sessions()) {
        let mut writer = SessionWriter::default();
        let bytes = written(Kind::New, |draft| sessions.iter().all(|session| writer.put(draft, session)));
        let Some(Content::New(back)) = Content::parse(Kind::New, &bytes) else { panic!("it was just written") };
        prop_assert_eq!(back.len(), sessions.len());
        prop_assert!(back.iter().zip(&sessions).all(|(a, b)| is_same(a, b)));
        let plain: usize = sessions.iter().map(SharedSession::encoded_len).sum();
        prop_assert!(bytes.len() <= plain + sessions.len(), "at most a byte more for each than alone");
    }

    #[test]
    fn ids_come_back(ids in proptest::collection::vec((ids(), any::<u64>()), 0..40)) {
        let bytes = written(Kind::Get, |draft| ids.iter().all(|(id, _)| put_id(draft, id)));
        let names: Vec<_> = ids.iter().map(|(id, _)| *id).collect();
        prop_assert!(matches!(Content::parse(Kind::Get, &bytes), Some(Content::Get(back)) if back == names));
        let put = |draft: &mut Draft| ids.iter().all(|(id, until)| put_deletion(draft, id, UnixSeconds(*until)));
        let Some(Content::Delete(back)) = Content::parse(Kind::Delete, &written(Kind::Delete, put)) else {
            panic!("it was just written")
        };
        prop_assert!(back.iter().map(|(id, until)| (*id, until.0)).eq(ids.iter().copied()));
    }

    /// Whatever a peer writes is read or is not, and never panics.
    #[test]
    fn any_bytes_are_read_or_not(kind in 0_u8..14, bytes in proptest::collection::vec(0_u8..40, 0..200)) {
        if let Some(content) = Kind::of(kind).and_then(|kind| Content::parse(kind, &bytes)) {
            prop_assert!(content.len() <= bytes.len());
        }
    }
}

#[test]
fn a_policy_is_named_once() {
    let session = |number: u8| SharedSession {
        id: SessionId::try_from(&[number; 32][..]).unwrap(),
        policy: PolicyHash::from_bytes([7; 32]),
        lifespan: Lifespan { created: UnixSeconds(1), expires: UnixSeconds(2) },
        state: State::from(vec![number; 100]),
    };
    let mut writer = SessionWriter::default();
    let bytes = written(Kind::New, |draft| (0..3).all(|number| writer.put(draft, &session(number))));
    assert_eq!(bytes.len(), 33 + 3 * (1 + 32 + 8 + 8 + 2 + 100));
}

#[test]
fn a_session_before_any_policy_is_not_in_form() {
    let mut bytes = vec![1, 9];
    bytes.extend_from_slice(&[0; 18]);
    assert!(Content::parse(Kind::New, &bytes).is_none());
    let with_policy = [&[0; 33][..], &bytes].concat();
    assert_eq!(Content::parse(Kind::New, &with_policy).unwrap().len(), 1);
}

#[test]
fn a_heartbeat_may_say_more_and_a_request_may_not() {
    let heartbeat = Heartbeat { name: MemberName::new("edge").unwrap(), entries: 1, pushed: 2, taken: 3 };
    let mut bytes = written(Kind::Heartbeat, |draft| put_heartbeat(draft, &heartbeat));
    bytes.push(9);
    let read = |kind, bytes: &[u8]| Content::parse(kind, bytes);
    assert!(matches!(read(Kind::Heartbeat, &bytes), Some(Content::Heartbeat(back)) if back == heartbeat));
    assert!(read(Kind::Heartbeat, &bytes[..bytes.len() - 2]).is_none());
    let mut bytes = written(Kind::StateRequest, |draft| put_number(draft, 7));
    assert!(matches!(read(Kind::StateRequest, &bytes), Some(Content::StateRequest { from: 7 })));
    bytes.push(9);
    assert!(read(Kind::StateRequest, &bytes).is_none());
}

#[test]
fn a_check_comes_back_and_is_of_a_name_of_the_dns() {
    let check = |name: &str| DomainCheck { name: name.to_owned(), digest: [7; 32], expires: UnixSeconds(9) };
    let back = |name: &str| match Content::parse(
        Kind::DomainCheck,
        &written(Kind::DomainCheck, |draft| put_check(draft, &check(name))),
    ) {
        Some(Content::DomainCheck(back)) => Some(back),
        _ => None,
    };
    for name in ["a.example", "xn--bcher-kva.example", &"a".repeat(253)] {
        assert_eq!(back(name), Some(check(name)));
    }
    for name in ["", "A.example", "a b", "*.a.example", "a/../b", "ä", &"a".repeat(254)] {
        assert_eq!(back(name), None, "{name}");
    }
}

#[test]
fn a_part_says_whether_there_is_more() {
    let part = |next, is_last| {
        let bytes = written(Kind::Part, |draft| put_part(draft, 5, next, is_last));
        let Some(Content::Part(part)) = Content::parse(Kind::Part, &bytes) else {
            panic!("it was just written")
        };
        assert_eq!(part.asked, 5);
        (part.next, part.is_last, part.is_end)
    };
    assert_eq!(part(Some(6), false), (6, false, false));
    assert_eq!(part(Some(6), true), (6, true, false));
    assert_eq!(part(None, true), (0, true, true));
}
