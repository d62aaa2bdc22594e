//! Two members' threads, without TLS.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser_session::{
    Cache, Lifespan, Provenance, ResumptionFailure, SessionId, SharedSession, State, UnixSeconds,
};
use courser_sharing::{DomainCheck, FleetHandle, Pulled};

use crate::member::{member, now, place, policy};
use crate::wait_for;

/// Long enough for an answer on one machine, however busy.
const DEADLINE: Duration = Duration::from_secs(10);

struct Member {
    handle: FleetHandle,
    cache: Arc<Cache>,
}

impl Member {
    fn start(name: &str, own: UdpSocket, peers: &[SocketAddr]) -> Self {
        let cache = Arc::new(Cache::new(1 << 20, 1));
        Self { handle: member(name, own, peers, Arc::clone(&cache)), cache }
    }

    fn has(&self, id: &SessionId) -> Option<()> {
        self.cache.contains(id, &policy(), now()).then_some(())
    }

    fn puts(&self, session: &SharedSession) {
        let SharedSession { id, policy, lifespan, state } = session.clone();
        assert!(self.cache.put(&id, policy, state, lifespan, Provenance::Local, now()).is_stored());
    }

    fn knows_peers(&self, count: usize) {
        wait_for("peers", || (self.handle.status().unwrap().member.peers.len() == count).then_some(()));
    }
}

/// Two that know each other.
fn pair() -> (Member, Member) {
    let (a, b) = (place(), place());
    let peers = [a.1, b.1];
    // Each has the whole list, itself included.
    let (a, b) = (Member::start("a", a.0, &peers), Member::start("b", b.0, &peers));
    a.knows_peers(1);
    b.knows_peers(1);
    (a, b)
}

fn session(number: u8) -> SharedSession {
    SharedSession {
        id: id(number),
        policy: policy(),
        lifespan: Lifespan::new(now(), Duration::from_secs(600)),
        state: State::from(vec![number; 200]),
    }
}

fn id(number: u8) -> SessionId {
    SessionId::try_from(&[number; 32][..]).unwrap()
}

fn pull(handle: &FleetHandle, id: SessionId, deadline: Duration) -> Pulled {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(handle.pull(id, deadline))
}

#[test]
fn what_one_makes_the_other_has_until_it_is_deleted() {
    let (a, b) = pair();
    for number in 0..100 {
        a.handle.push(session(number));
    }
    for number in 0..100 {
        wait_for("a session", || b.has(&id(number)));
    }
    a.handle.delete(id(7));
    wait_for("the deletion", || {
        b.cache
            .peek(&id(7), &policy(), now())
            .is_err_and(|miss| miss == ResumptionFailure::Deleted)
            .then_some(())
    });
    b.handle.push(session(200));
    wait_for("a session the other way", || a.has(&id(200)));
    let status = a.handle.status().unwrap();
    assert_eq!((status.member.sent.pushed, status.member.received.taken, status.dropped), (100, 1, 0));
    assert_eq!(status.peers.len(), 1, "its own address is passed over");
    assert!(status.member.sent.messages < 90, "several sessions share a datagram: {:?}", status.member.sent);
}

#[test]
fn what_was_not_pushed_is_pulled() {
    let (a, b) = pair();
    a.puts(&session(1));
    assert_eq!(pull(&b.handle, id(1), DEADLINE), Pulled::Found);
    assert!(b.has(&id(1)).is_some());
    let start = Instant::now();
    assert_eq!(pull(&b.handle, id(2), DEADLINE), Pulled::Missing);
    assert!(start.elapsed() < DEADLINE / 2, "an answer, not silence");
}

#[test]
fn many_who_want_one_session_all_get_it() {
    let (a, b) = pair();
    a.puts(&session(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let pulled = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let handle = b.handle.clone();
            tasks.spawn(async move { handle.pull(id(1), DEADLINE).await });
        }
        tasks.join_all().await
    });
    assert!(pulled.iter().all(|pulled| *pulled == Pulled::Found), "{pulled:?}");
    assert!(b.handle.status().unwrap().member.pulls.sent < 50, "who asks at once shares an answer");
}

#[test]
fn a_pull_ends_at_its_deadline_when_a_peer_does_not_answer() {
    let (a, b) = pair();
    let address = b.handle.status().unwrap().address;
    drop(b);
    // Its place is taken, so that questions arrive there, and nobody says a word.
    let _silent = wait_for("the port", || UdpSocket::bind(address).ok());
    assert_eq!(pull(&a.handle, id(1), Duration::from_millis(5)), Pulled::TimedOut);
    let pulls = a.handle.status().unwrap().member.pulls;
    assert_eq!((pulls.sent, pulls.not_sent), (1, 0), "the peer was asked: it is not silent for long yet");
}

#[test]
fn who_watches_sees_what_passes_and_no_secret() {
    let (a, b) = pair();
    let (sent, received) = (a.handle.watch(), b.handle.watch());
    // A watch begins when the thread has heard of it.
    a.handle.status().unwrap();
    b.handle.status().unwrap();
    a.handle.push(session(1));
    let next = |messages: &std::sync::mpsc::Receiver<courser_fleet::Passed>, part: &str| {
        let mut lines = std::iter::from_fn(|| Some(messages.recv_timeout(DEADLINE).ok()?.to_string()));
        lines.find(|line| line.contains(part)).unwrap()
    };
    assert!(next(&sent, "sent to all: new").contains("1 sessions"), "it says how many");
    let line = next(&received, ": new");
    assert!(line.starts_with("received from 127.0.0.1:") && !line.contains("0101"), "{line}");
    drop((sent, received));
    a.handle.push(session(2));
    wait_for("a session after the watch", || b.has(&id(2)));
}

#[test]
fn the_thread_ends_with_its_last_handle() {
    let (socket, address) = place();
    let member = Member::start("a", socket, &[]);
    let other = member.handle.clone();
    drop(member);
    assert!(other.status().is_some(), "a handle is left");
    drop(other);
    wait_for("the port", || UdpSocket::bind(address).ok());
}

#[test]
fn a_thread_that_is_stopped_has_left_the_network_while_handles_remain() {
    let (socket, address) = place();
    let member = Member::start("a", socket, &[]);
    assert!(member.handle.stop(Duration::from_secs(1)));
    assert!(UdpSocket::bind(address).is_ok(), "the port is free at once");
    assert!(member.handle.status().is_none() && member.handle.stop(Duration::ZERO), "it stays stopped");
}

#[test]
fn garbage_is_counted_and_changes_nothing() {
    let (a, b) = pair();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = b.handle.status().unwrap().address;
    for len in [0, 1, 40, 200, 1472, 3000] {
        stranger.send_to(&vec![0x55; len], target).unwrap();
    }
    wait_for("the refusals", || (b.handle.status().unwrap().member.refused.total() >= 6).then_some(()));
    a.handle.push(session(1));
    wait_for("a session", || b.has(&id(1)));
}

#[test]
fn a_check_of_an_authority_is_answered_by_all_or_it_is_said_who_does_not() {
    let places = [place(), place(), place()];
    let peers = [places[0].1, places[1].1, places[2].1];
    let [(a, _), (b, b_address), (c, c_address)] = places;
    let [a, b, c] = [("a", a), ("b", b), ("c", c)].map(|(name, own)| Member::start(name, own, &peers));
    [&a, &b, &c].iter().for_each(|member| member.knows_peers(2));
    let expires = UnixSeconds(now().0 + 60);
    let check = |number| DomainCheck { name: "shop.example".to_owned(), digest: [number; 32], expires };
    let seen: Arc<Mutex<Vec<DomainCheck>>> = Arc::default();
    let answers = |member: &Member| {
        let seen = Arc::clone(&seen);
        member.handle.answer_checks(Arc::new(move |check| {
            seen.lock().unwrap().push(check.clone());
            true
        }));
    };
    answers(&b);
    let missing = a.handle.send_check(&check(1), Duration::ZERO).unwrap_err();
    assert!(missing.contains(&format!("({c_address}) does not say that it answers")), "{missing}");
    answers(&c);
    a.handle.send_check(&check(2), DEADLINE).unwrap();
    let of = |number| seen.lock().unwrap().iter().filter(|seen| **seen == check(number)).count();
    assert!(of(2) >= 2, "both have it");
    a.handle.withdraw(&check(2));
    wait_for("the end of it", || {
        let over = |seen: &&DomainCheck| seen.digest == [2; 32] && seen.expires == UnixSeconds(0);
        (seen.lock().unwrap().iter().filter(over).count() == 2).then_some(())
    });
    assert!(c.handle.stop(DEADLINE));
    let missing = a.handle.send_check(&check(3), Duration::from_secs(1)).unwrap_err();
    assert!(missing.contains(&format!("({c_address}) ")), "{missing}");
    assert!(!missing.contains(&b_address.to_string()), "the other has answered: {missing}");
}
