//! Which server of a pool has a client's session: learnt from the ServerHello of a relayed connection as it passes, for the
//! ClientHello that offers the session's ID next time.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use courser_balance::{AffinityKey, Server, StickTable};
use courser_session::SessionId;
use courser_wire::server_hello::{MAX_LENGTH, ServerSession, session_id};

/// Sessions that a pool remembers: 3 MiB.
const SESSIONS: usize = 1 << 17;

/// How long a session is remembered after it was last used; what its server does with it is not known here (RFC 5246, section
/// F.1.4: at most 24 hours).
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The servers of a pool by the IDs of sessions.
#[derive(Debug)]
pub(crate) struct SessionServers {
    table: StickTable,
    /// So that nobody can choose IDs that meet in one place of the table.
    random: RandomState,
}

impl Default for SessionServers {
    fn default() -> Self {
        Self { table: StickTable::new(SESSIONS, LIFETIME), random: RandomState::new() }
    }
}

impl SessionServers {
    /// The server that has the session.
    pub(crate) fn find(&self, id: &SessionId, now: Duration) -> Option<AffinityKey> {
        self.table.find(self.random.hash_one(id.as_bytes()), now)
    }
}

/// The session that the client of a relay offers, and what its server has said so far.
pub(crate) struct RelayedSession {
    pub(crate) id: Option<SessionId>,
    /// The client offers a ticket: a server that takes it returns the client's ID, which is then no session's.
    ticket: bool,
    /// `None` once the server has said which session it is.
    server_hello: Option<Vec<u8>>,
}

impl RelayedSession {
    pub(crate) fn new(id: &[u8], ticket: bool) -> Self {
        Self { id: SessionId::try_from(id).ok(), ticket, server_hello: Some(Vec::new()) }
    }

    /// Remembers whose the session is, once enough has come from the server to say so. What comes is copied up to there, and
    /// goes on without delay.
    pub(crate) fn learn<T>(
        &mut self,
        sent: &[u8],
        sessions: &SessionServers,
        server: &Server<T>,
        now: Duration,
    ) {
        let Some(hello) = &mut self.server_hello else { return };
        hello.extend_from_slice(&sent[..sent.len().min(MAX_LENGTH - hello.len())]);
        match session_id(hello) {
            ServerSession::Incomplete => return,
            ServerSession::Id(id) => {
                let is_clients = self.id.is_some_and(|offered| offered.as_bytes() == id);
                if !(self.ticket && is_clients) {
                    sessions.table.store(sessions.random.hash_one(id), server, now);
                }
            }
            ServerSession::None => {}
        }
        self.server_hello = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_balance::{Balance, Pool, ServerSettings};

    const NOW: Duration = Duration::from_secs(1000);

    /// A ServerHello with this ID and suite.
    fn hello(id: &[u8], suite: [u8; 2]) -> Vec<u8> {
        let mut bytes = vec![22, 3, 3, 0, 80, 2, 0, 0, 76, 3, 3];
        bytes.extend([7; 32]);
        bytes.push(u8::try_from(id.len()).expect("an ID is short"));
        bytes.extend(id);
        bytes.extend(suite);
        bytes.extend([0; 40]);
        bytes
    }

    /// Whether a table knows `id` after a server has answered a client that offered `offered` with these bytes, in such pieces.
    fn learns(offered: &[u8], ticket: bool, sent: &[u8], piece: usize, id: &[u8]) -> bool {
        let (sessions, pool) = (SessionServers::default(), Pool::new(Balance::Least, false));
        let settings = ServerSettings {
            name: "a".to_owned(),
            target: (),
            weight: std::num::NonZeroU32::MIN,
            limit: None,
            priority: 0,
        };
        let (server, mut session) = (pool.server(settings), RelayedSession::new(offered, ticket));
        sent.chunks(piece).for_each(|piece| session.learn(piece, &sessions, &server, NOW));
        sessions.find(&SessionId::try_from(id).expect("a session ID"), NOW).is_some()
    }

    const TLS12: [u8; 2] = [0xc0, 0x2f];
    const TLS13: [u8; 2] = [0x13, 1];

    #[test]
    fn a_new_session_is_learnt_however_its_hello_is_cut() {
        let sent = hello(&[9; 32], TLS12);
        assert!((1..=sent.len()).all(|piece| learns(&[], false, &sent, piece, &[9; 32])));
    }

    #[test]
    fn a_resumed_session_is_learnt_again() {
        assert!(learns(&[9; 32], false, &hello(&[9; 32], TLS12), 200, &[9; 32]));
    }

    #[test]
    fn the_id_of_a_client_with_a_ticket_is_no_session() {
        assert!(!learns(&[9; 32], true, &hello(&[9; 32], TLS12), 200, &[9; 32]));
        assert!(learns(&[9; 32], true, &hello(&[8; 32], TLS12), 200, &[8; 32]), "the ticket was not taken");
    }

    #[test]
    fn tls_13_has_no_session_ids() {
        assert!(!learns(&[9; 32], false, &hello(&[9; 32], TLS13), 200, &[9; 32]));
    }
}
