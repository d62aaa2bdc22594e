//! What one process remembers and the next has to know: the one place where secrets leave a process unsealed, in a file without a
//! path that only the process gets which we have started ourselves. It is closed once it is read.
//!
//! The file has the length of a JSON object (8 bytes, big endian), the object, and then records: a length (4), a kind (1), and a
//! session as [`SharedSession::encode`] writes it, or an ID, with 8 bytes of time behind it where it is deleted.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use courser_net::{Address, KnownSources, memory_file};
use courser_proxy::{Answer, Crowd, Lookable, Order, Visitors};
use courser_session::{Cache, Change, Cursor, Provenance, SessionId, SharedSession, UnixSeconds};
use courser_sharing::DomainCheck;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::fleet_keys::unix_now;
use crate::process::Process;

/// What is read before a process has its cache, and then the sessions.
#[derive(Debug)]
pub(crate) struct Memory {
    head: Head,
    records: BufReader<File>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Head {
    /// The keys of a host alone, as text.
    keys: Option<String>,
    answers: Vec<KnownName>,
    orders: Vec<KnownOrder>,
    /// Who has been here, and how many handshakes a worker makes in a second.
    #[serde(default)]
    crowd: Option<KnownCrowd>,
    /// What authorities may ask for now.
    #[serde(default)]
    checks: Vec<KnownCheck>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KnownCheck {
    name: String,
    digest: [u8; 32],
    expires: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct KnownCrowd {
    salt: u32,
    words: Vec<u32>,
    capacity: f64,
}

impl Drop for Head {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// The servers that a name has.
#[derive(Debug, Serialize, Deserialize)]
struct KnownName {
    name: String,
    /// None of a service.
    port: Option<u16>,
    servers: Vec<KnownServer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KnownServer {
    address: SocketAddr,
    host: String,
    port: u16,
    priority: u16,
    weight: Option<NonZeroU32>,
}

/// What the operator has said of a server.
#[derive(Debug, Serialize, Deserialize)]
struct KnownOrder {
    pool: String,
    server: String,
    is_drained: bool,
    percent: u16,
}

/// Kinds of records.
const SESSION: u8 = b's';
const REMOVED: u8 = b'r';
const DELETED: u8 = b'd';

/// Bytes of sessions that are taken from the cache at a time.
const PORTION: usize = 64 * 1024;

/// More than the longest session.
const LONGEST_RECORD: usize = 128 * 1024;

/// All that `process` remembers. Also returns the number of sessions.
pub(super) fn write_all(process: &Process) -> io::Result<(OwnedFd, usize)> {
    let mut count = 0;
    let file = memory_file::sealed("courser-upgrade", |file| {
        write_head(file, &Head::of(process))?;
        if let Some(cache) = &process.sessions.cache {
            count = write_sessions(file, cache)?;
        }
        Ok(())
    });
    Ok((file?, count))
}

/// Changes of the cache of `process`.
pub(super) fn write_changes(process: &Process, changes: Vec<Change>) -> io::Result<OwnedFd> {
    memory_file::sealed("courser-upgrade", |file| {
        write_head(file, &Head::default())?;
        let Some(cache) = &process.sessions.cache else { return Ok(()) };
        let now = unix_now();
        for change in changes {
            match change {
                // One that is gone again has a change of its own, or made room for others.
                Change::Put(id) => {
                    cache.copy(&id, now).map_or(Ok(()), |session| write_session(file, &session))?;
                }
                Change::Removed(id) => write_record(file, REMOVED, id.as_bytes())?,
                Change::Deleted(id, until) => write_deleted(file, &id, until)?,
            }
        }
        Ok(())
    })
}

impl Head {
    fn of(process: &Process) -> Self {
        let orders = process.orders.list().into_iter();
        let order =
            |(pool, server, Order { is_drained, percent })| KnownOrder { pool, server, is_drained, percent };
        Self {
            keys: process.keys.of_this_host_alone().map(|text| text.to_string()),
            answers: process.resolver.answers().into_iter().map(KnownName::of).collect(),
            orders: orders.map(order).collect(),
            crowd: Some(KnownCrowd::of(&process.crowd)),
            checks: process.pending.hand_over().into_iter().map(KnownCheck::of).collect(),
        }
    }
}

fn write_head(file: &mut BufWriter<File>, head: &Head) -> io::Result<()> {
    let head = Zeroizing::new(serde_json::to_vec(head)?);
    file.write_all(&(head.len() as u64).to_be_bytes())?;
    file.write_all(&head)
}

/// Tombstones first: a session that this host has made anew after one stays.
fn write_sessions(file: &mut BufWriter<File>, cache: &Cache) -> io::Result<usize> {
    let now = unix_now();
    cache.tombstones(now).into_iter().try_for_each(|(id, until)| write_deleted(file, &id, until))?;
    let (mut count, mut next) = (0, Some(Cursor::START));
    while let Some(cursor) = next {
        let (sessions, after) = cache.export(cursor, PORTION, now);
        count += sessions.len();
        sessions.iter().try_for_each(|session| write_session(file, session))?;
        next = after;
    }
    Ok(count)
}

fn write_session(file: &mut BufWriter<File>, session: &SharedSession) -> io::Result<()> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(session.encoded_len()));
    // One that is too long to travel stays behind.
    if session.encode(&mut bytes) { write_record(file, SESSION, &bytes) } else { Ok(()) }
}

fn write_deleted(file: &mut BufWriter<File>, id: &SessionId, until: UnixSeconds) -> io::Result<()> {
    write_record(file, DELETED, &[id.as_bytes(), &until.0.to_be_bytes()].concat())
}

fn write_record(file: &mut BufWriter<File>, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    file.write_all(&len.to_be_bytes())?;
    file.write_all(&[kind])?;
    file.write_all(bytes)
}

impl Memory {
    pub(super) fn open(descriptor: OwnedFd) -> io::Result<Self> {
        let mut records = BufReader::new(memory_file::open(descriptor)?);
        let mut len = [0; 8];
        records.read_exact(&mut len)?;
        let mut head = Zeroizing::new(Vec::new());
        records.by_ref().take(u64::from_be_bytes(len)).read_to_end(&mut head)?;
        Ok(Self { head: serde_json::from_slice(&head)?, records })
    }

    /// The keys of a host alone.
    pub(crate) fn keys(&self) -> Option<&str> {
        self.head.keys.as_deref()
    }

    /// What a process has to know before there are pools.
    pub(crate) fn restore(&mut self, process: &mut Process) {
        if let Some(crowd) = self.head.crowd.take() {
            process.crowd = Arc::new(crowd.crowd());
        }
        process.resolver.take_over(self.head.answers.drain(..).map(KnownName::answers));
        let order =
            |KnownOrder { pool, server, is_drained, percent }| (pool, server, Order { is_drained, percent });
        process.orders.take_over(self.head.orders.drain(..).map(order));
        for check in self.head.checks.drain(..) {
            // No other process takes over from one that has just begun.
            let _ = process.pending.put(&check.check());
        }
    }

    /// Does to `cache` what was done to that of the other process. Returns the number of sessions.
    pub(crate) fn replay(mut self, cache: &Cache) -> io::Result<usize> {
        let (mut count, now, mut bytes) = (0, unix_now(), Zeroizing::new(Vec::new()));
        while let Some(kind) = self.record(&mut bytes)? {
            count += usize::from(kind == SESSION);
            replay(kind, &bytes, cache, now)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a record that makes no sense"))?;
        }
        Ok(count)
    }

    /// Reads the next record, and returns its kind.
    fn record(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<u8>> {
        let mut begin = [0; 5];
        let first = self.records.read(&mut begin)?;
        if first == 0 {
            return Ok(None);
        }
        self.records.read_exact(&mut begin[first..])?;
        let [a, b, c, d, kind] = begin;
        let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).map_err(io::Error::other)?;
        if len > LONGEST_RECORD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a record that is too long"));
        }
        bytes.resize(len, 0);
        self.records.read_exact(bytes)?;
        Ok(Some(kind))
    }
}

fn replay(kind: u8, mut bytes: &[u8], cache: &Cache, now: UnixSeconds) -> Option<()> {
    match kind {
        SESSION => {
            let SharedSession { id, policy, lifespan, state } = SharedSession::decode(&mut bytes)?;
            cache.put(&id, policy, state, lifespan, Provenance::Local, now);
        }
        REMOVED => {
            cache.remove(&SessionId::try_from(bytes).ok()?);
        }
        DELETED => {
            let (id, until) = bytes.split_last_chunk::<8>()?;
            cache.delete(&SessionId::try_from(id).ok()?, UnixSeconds(u64::from_be_bytes(*until)), now);
        }
        _ => return None,
    }
    Some(())
}

impl KnownCheck {
    fn of(DomainCheck { name, digest, expires }: DomainCheck) -> Self {
        Self { name, digest, expires: expires.0 }
    }

    fn check(self) -> DomainCheck {
        DomainCheck { name: self.name, digest: self.digest, expires: UnixSeconds(self.expires) }
    }
}

impl KnownCrowd {
    fn of(crowd: &Crowd) -> Self {
        let known = crowd.visitors.known();
        Self { salt: known.salt(), words: known.words().to_vec(), capacity: crowd.capacity() }
    }

    fn crowd(&self) -> Crowd {
        let known = KnownSources::from_words(self.salt, &self.words);
        Crowd::new(Visitors::from_known(&known), self.capacity)
    }
}

impl KnownName {
    fn of((name, answers): (Lookable, Vec<Answer>)) -> Self {
        let (name, port) = match name {
            Lookable::Name { host, port } => (host, Some(port)),
            Lookable::Service(name) => (name, None),
        };
        let server = |answer: Answer| {
            let Address::Ip(address) = answer.address else { return None };
            let (host, weight) = (answer.host.to_string(), answer.weight);
            Some(KnownServer { address, host, port: answer.port, priority: answer.priority, weight })
        };
        Self { name, port, servers: answers.into_iter().filter_map(server).collect() }
    }

    fn answers(self) -> (Lookable, Vec<Answer>) {
        let name = match self.port {
            Some(port) => Lookable::Name { host: self.name, port },
            None => Lookable::Service(self.name),
        };
        let answer = |KnownServer { address, host, port, priority, weight }| Answer {
            address: Address::Ip(address),
            host: Arc::from(host),
            port,
            priority,
            weight,
        };
        (name, self.servers.into_iter().map(answer).collect())
    }
}
