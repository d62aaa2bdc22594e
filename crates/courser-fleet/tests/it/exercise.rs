//! What has to hold for any bytes. The fuzz target runs this function on what it makes up, the tests on the corpus.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use courser_fleet::{
    AnyMessage, Event, Incarnation, Member, MemberName, MemberSettings, Now, Refusal, Status, UnixMillis,
};
use courser_session::{
    Cache, EpochLength, FleetKeys, Lifespan, PolicyHash, SessionId, SharedSession, State, UnixSeconds,
};

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
const LIFETIME: Duration = Duration::from_secs(7200);

/// Datagrams to a member: for each its type (1 byte), its length (2), and so many bytes. Those of type 0 are as they are,
/// and not one is accepted; others are sealed as by a peer, behind the time. All are counted, nothing that was opened stays,
/// and a session that the peer makes afterwards arrives.
pub(crate) fn fleet_message(bytes: &[u8]) {
    let mut pair = Pair::new();
    let mut rest = bytes;
    for number in 0..64 {
        let Some((&[kind, high, low], after)) = rest.split_first_chunk() else { break };
        let (content, after) = after.split_at(after.len().min(usize::from(u16::from_be_bytes([high, low]))));
        rest = after;
        pair.deliver(kind, 100 + number, content);
    }
    pair.works_still();
}

/// A member and its peer, who know each other.
struct Pair {
    keys: Arc<FleetKeys>,
    cache: Arc<Cache>,
    member: Member,
    peer: Member,
    now: Now,
}

const MAX_PAYLOAD: usize = 600;
const MEMBER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 8888);
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 8888);

impl Pair {
    fn new() -> Self {
        let keys = Arc::new(FleetKeys::alone(EpochLength::DEFAULT, LIFETIME, NOW).expect("in range"));
        let (cache, now) =
            (Arc::new(Cache::new(1 << 20, 2)), Now { wall: UnixMillis(NOW.0 * 1000), mono: 0 });
        let member = |name, cache| {
            let (name, incarnation) =
                (MemberName::new(name).expect("it is a name"), Incarnation::new(now.wall, [7; 8]));
            let settings = MemberSettings {
                max_payload: MAX_PAYLOAD,
                ..MemberSettings::new(name, incarnation, [7; 32])
            };
            Member::new(settings, Arc::clone(&keys), cache, now)
        };
        let (member, peer) =
            (member("member", Arc::clone(&cache)), member("peer", Arc::new(Cache::new(1 << 20, 2))));
        let mut pair = Self { keys, cache, member, peer, now };
        pair.exchange();
        assert_eq!((pair.status().peers.len(), pair.peer.status(now).peers.len()), (1, 1));
        pair
    }

    /// A tenth of a second with a datagram in it.
    fn deliver(&mut self, kind: u8, sequence: u64, content: &[u8]) {
        let before = self.status();
        let (sender, incarnation) = (before.peers[0].id, before.peers[0].incarnation);
        let to = sequence.is_multiple_of(2).then_some(before.id);
        let message = AnyMessage { sender, incarnation, to, sequence, kind, sent: self.now.wall, content };
        let mut datagram = match kind {
            0 => content.to_vec(),
            _ => message.seal(&self.keys, self.now.wall.seconds()),
        };
        self.member.receive(PEER, &mut datagram, self.now);
        assert!(datagram.iter().all(|&byte| byte == 0), "what was opened stays");
        let after = self.status();
        assert_eq!(after.received.datagrams, after.received.accepted + after.refused.total());
        match kind {
            0 => assert_eq!(after.received.accepted, before.received.accepted, "nobody has the key"),
            _ => assert_eq!(after.refused.get(Refusal::Forged), before.refused.get(Refusal::Forged)),
        }
        self.now = Now { wall: UnixMillis(self.now.wall.0 + 100), mono: self.now.mono + 100 };
        self.exchange();
    }

    /// Whether a session that the peer makes still arrives, unless it was among what the peer has deleted.
    fn works_still(&mut self) {
        let session = session(b"made after all that");
        self.peer.push(&session, self.now);
        self.now = Now { wall: UnixMillis(self.now.wall.0 + 2), mono: self.now.mono + 2 };
        self.exchange();
        let found = self.cache.get(&session.id, &session.policy, self.now.wall.seconds());
        let is_there = found.is_ok_and(|found| found.state[..] == session.state[..]);
        assert!(is_there || self.status().received.tombstoned + self.status().received.duplicate > 0);
    }

    /// Both say what they have to say.
    fn exchange(&mut self) {
        self.member.tick(self.now);
        self.peer.tick(self.now);
        while pass(&mut self.member, &mut self.peer, MEMBER, self.now)
            || pass(&mut self.peer, &mut self.member, PEER, self.now)
        {}
        let events = std::iter::from_fn(|| self.member.poll_event());
        assert!(
            events.filter(|event| matches!(event, Event::Answered { .. })).count() == 0,
            "nothing was wanted"
        );
    }

    fn status(&self) -> Status {
        self.member.status(self.now)
    }
}

/// Hands the next datagram of one to the other, if there is one.
fn pass(from: &mut Member, to: &mut Member, address: SocketAddr, now: Now) -> bool {
    let Some(mut transmit) = from.poll_transmit() else { return false };
    assert!(transmit.bytes.len() <= MAX_PAYLOAD);
    to.receive(address, &mut transmit.bytes, now);
    true
}

fn session(state: &[u8]) -> SharedSession {
    SharedSession {
        id: SessionId::try_from(&[7; 32][..]).expect("32 bytes are an ID"),
        policy: PolicyHash::builder("fuzz", "fuzz").finish(),
        lifespan: Lifespan::new(NOW, LIFETIME),
        state: State::from(state),
    }
}
