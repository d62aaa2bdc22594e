//! The contents of messages: sealed parts to values and back. A peer with the fleet's secret may write anything here, so
//! nothing in it can panic; `receive.rs` judges the values.
//!
//! | type | after the time |
//! |---|---|
//! | new, found | sessions |
//! | delete | until when (8), length of the ID (1), ID; and so on |
//! | get, missing | length of the ID (1), ID; and so on |
//! | state-request | cursor of the first session (8) |
//! | part | from where on it was asked (8), from where on the next are (8), flags (1): 1 is the last part of this answer, 2 is the end; sessions |
//! | heartbeat | length of the name (1), name, sessions held (8), pushed (8), taken (8); a later release may append fields |
//! | challenge, proof | the receiver: member (8), incarnation (16); the proof asked for or given (32) |
//! | domain-check | length of the name (1), name, digest (32), expires (8) |
//! | acknowledged | digest (32) |
//!
//! Sessions are a row of items: `0` and a policy hash (32), to which all that follow are bound; or the length of an ID
//! (1), ID, created (8), expires (8), length of the state (2), state.

use courser_session::{Lifespan, PolicyHash, SessionId, SharedSession, State, UnixSeconds};

use crate::domain_check::DomainCheck;
use crate::identity::{Incarnation, MemberId, MemberName};
use crate::message::{Draft, Kind};

/// The content of a message.
pub(crate) enum Content {
    New(Vec<SharedSession>),
    Delete(Vec<(SessionId, UnixSeconds)>),
    Get(Vec<SessionId>),
    Found(Vec<SharedSession>),
    Missing(Vec<SessionId>),
    StateRequest { from: u64 },
    Part(Part),
    Heartbeat(Heartbeat),
    Challenge(Proof),
    Proof(Proof),
    DomainCheck(DomainCheck),
    Acknowledged([u8; 32]),
}

/// A part of all sessions that a member has.
pub(crate) struct Part {
    /// From where on it was asked for.
    pub(crate) asked: u64,
    /// From where on to ask next.
    pub(crate) next: u64,
    /// No more parts come without asking.
    pub(crate) is_last: bool,
    /// There are no more sessions at all.
    pub(crate) is_end: bool,
    pub(crate) sessions: Vec<SharedSession>,
}

/// The state of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    pub(crate) name: MemberName,
    /// Sessions that its cache holds.
    pub(crate) entries: u64,
    /// Sessions that it has pushed since its start.
    pub(crate) pushed: u64,
    /// Sessions that it has taken from others since its start.
    pub(crate) taken: u64,
}

/// A challenge to one start of a member, or the answer to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Whom the message is for.
    pub(crate) to: (MemberId, Incarnation),
    pub(crate) bytes: [u8; 32],
    /// The number of the last message to all that its sender had sent before: those up to it are of the past.
    pub(crate) last_to_all: u64,
}

impl Content {
    /// Parses the content of a message of this type; `None` if it is not in form.
    pub(crate) fn parse(kind: Kind, bytes: &[u8]) -> Option<Self> {
        Some(match kind {
            Kind::New => Self::New(sessions(bytes)?),
            Kind::Found => Self::Found(sessions(bytes)?),
            Kind::Delete => Self::Delete(list(bytes, deletion)?),
            Kind::Get => Self::Get(list(bytes, id)?),
            Kind::Missing => Self::Missing(list(bytes, id)?),
            Kind::StateRequest => Self::StateRequest { from: whole(bytes, number)? },
            Kind::Part => Self::Part(part(bytes)?),
            Kind::Heartbeat => Self::Heartbeat(heartbeat(bytes)?),
            Kind::Challenge => Self::Challenge(whole(bytes, proof)?),
            Kind::Proof => Self::Proof(whole(bytes, proof)?),
            Kind::DomainCheck => Self::DomainCheck(whole(bytes, check)?),
            Kind::Acknowledged => Self::Acknowledged(whole(bytes, array)?),
        })
    }

    /// How many sessions or IDs it names.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::New(sessions) | Self::Found(sessions) => sessions.len(),
            Self::Part(part) => part.sessions.len(),
            Self::Delete(ids) => ids.len(),
            Self::Get(ids) | Self::Missing(ids) => ids.len(),
            _ => 0,
        }
    }
}

/// Writes sessions into a draft; those of one policy name it once.
#[derive(Default)]
pub(crate) struct SessionWriter {
    policy: Option<PolicyHash>,
}

impl SessionWriter {
    /// Appends a session if there is room for it.
    pub(crate) fn put(&mut self, draft: &mut Draft, session: &SharedSession) -> bool {
        let Ok(state_len) = u16::try_from(session.state.len()) else { return false };
        let names_policy = self.policy != Some(session.policy);
        let policy_len = if names_policy { 1 + 32 } else { 0 };
        let len = policy_len + id_len(&session.id) + 8 + 8 + 2 + session.state.len();
        let is_in = draft.append(len, |out| {
            if names_policy {
                out.push(POLICY);
                out.extend_from_slice(session.policy.as_bytes());
            }
            write_id(out, &session.id);
            out.extend_from_slice(&session.lifespan.created.0.to_be_bytes());
            out.extend_from_slice(&session.lifespan.expires.0.to_be_bytes());
            out.extend_from_slice(&state_len.to_be_bytes());
            out.extend_from_slice(&session.state);
        });
        if is_in {
            self.policy = Some(session.policy);
        }
        is_in
    }
}

/// Appends an ID if there is room for it.
pub(crate) fn put_id(draft: &mut Draft, id: &SessionId) -> bool {
    draft.append(id_len(id), |out| write_id(out, id))
}

/// Appends a session that is deleted, and until when its tombstone blocks its return.
pub(crate) fn put_deletion(draft: &mut Draft, id: &SessionId, until: UnixSeconds) -> bool {
    draft.append(8 + id_len(id), |out| {
        out.extend_from_slice(&until.0.to_be_bytes());
        write_id(out, id);
    })
}

/// Appends all of a request for state.
pub(crate) fn put_number(draft: &mut Draft, number: u64) -> bool {
    draft.append(8, |out| out.extend_from_slice(&number.to_be_bytes()))
}

/// Appends all of a part but its sessions.
pub(crate) fn put_part(draft: &mut Draft, asked: u64, next: Option<u64>, is_last: bool) -> bool {
    let flags = (u8::from(is_last) * LAST) | (u8::from(next.is_none()) * END);
    put_number(draft, asked) && put_number(draft, next.unwrap_or(0)) && draft.append(1, |out| out.push(flags))
}

/// Appends all of a heartbeat.
pub(crate) fn put_heartbeat(draft: &mut Draft, heartbeat: &Heartbeat) -> bool {
    let name = heartbeat.name.as_str().as_bytes();
    let numbers = [heartbeat.entries, heartbeat.pushed, heartbeat.taken];
    draft.append(1 + name.len() + 8 * numbers.len(), |out| {
        out.push(u8::try_from(name.len()).expect("a name has at most 64 bytes"));
        out.extend_from_slice(name);
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
    })
}

/// Appends all of a challenge or a proof.
pub(crate) fn put_proof(draft: &mut Draft, proof: &Proof) -> bool {
    let parts = [&proof.to.0.0[..], &proof.to.1.0, &proof.bytes, &proof.last_to_all.to_be_bytes()];
    draft.append(8 + 16 + 32 + 8, |out| parts.iter().for_each(|part| out.extend_from_slice(part)))
}

/// Appends all of a check; its name has at most [`DomainCheck::LONGEST_NAME`] bytes.
pub(crate) fn put_check(draft: &mut Draft, check: &DomainCheck) -> bool {
    let DomainCheck { name, digest, expires } = check;
    let Ok(name_len) = u8::try_from(name.len()) else { return false };
    draft.append(1 + name.len() + 32 + 8, |out| {
        out.push(name_len);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(digest);
        out.extend_from_slice(&expires.0.to_be_bytes());
    })
}

/// Appends all of an acknowledgement.
pub(crate) fn put_digest(draft: &mut Draft, digest: &[u8; 32]) -> bool {
    draft.append(32, |out| out.extend_from_slice(digest))
}

fn id_len(id: &SessionId) -> usize {
    1 + id.as_bytes().len()
}

fn write_id(out: &mut Vec<u8>, id: &SessionId) {
    let bytes = id.as_bytes();
    out.push(u8::try_from(bytes.len()).expect("a session ID has at most 32 bytes"));
    out.extend_from_slice(bytes);
}

/// Reads values until the end.
fn list<T>(mut bytes: &[u8], read: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(read(&mut bytes)?);
    }
    Some(values)
}

/// Reads a value, behind which nothing may stand.
fn whole<T>(mut bytes: &[u8], read: impl Fn(&mut &[u8]) -> Option<T>) -> Option<T> {
    read(&mut bytes).filter(|_| bytes.is_empty())
}

fn sessions(mut bytes: &[u8]) -> Option<Vec<SharedSession>> {
    let (mut sessions, mut policy) = (Vec::new(), None);
    while let Some(&first) = bytes.first() {
        if first == POLICY {
            let [_, hash @ ..] = array::<33>(&mut bytes)?;
            policy = Some(PolicyHash::from_bytes(hash));
        } else {
            sessions.push(session(&mut bytes, policy?)?);
        }
    }
    Some(sessions)
}

fn session(bytes: &mut &[u8], policy: PolicyHash) -> Option<SharedSession> {
    let id = id(bytes)?;
    let lifespan = Lifespan { created: UnixSeconds(number(bytes)?), expires: UnixSeconds(number(bytes)?) };
    let state_len = u16::from_be_bytes(array(bytes)?);
    let state = State::from(slice(bytes, usize::from(state_len))?);
    Some(SharedSession { id, policy, lifespan, state })
}

fn part(mut bytes: &[u8]) -> Option<Part> {
    let (asked, next) = (number(&mut bytes)?, number(&mut bytes)?);
    let [flags] = array(&mut bytes)?;
    let (is_last, is_end) = (flags & LAST != 0, flags & END != 0);
    Some(Part { asked, next, is_last, is_end, sessions: sessions(bytes)? })
}

fn heartbeat(mut bytes: &[u8]) -> Option<Heartbeat> {
    let [len] = array(&mut bytes)?;
    let name = std::str::from_utf8(slice(&mut bytes, usize::from(len))?).ok()?;
    let name = MemberName::new(name).ok()?;
    let [entries, pushed, taken] = [number(&mut bytes)?, number(&mut bytes)?, number(&mut bytes)?];
    Some(Heartbeat { name, entries, pushed, taken })
}

fn deletion(bytes: &mut &[u8]) -> Option<(SessionId, UnixSeconds)> {
    let until = UnixSeconds(number(bytes)?);
    Some((id(bytes)?, until))
}

fn proof(bytes: &mut &[u8]) -> Option<Proof> {
    let to = (MemberId(array(bytes)?), Incarnation(array(bytes)?));
    Some(Proof { to, bytes: array(bytes)?, last_to_all: number(bytes)? })
}

/// The name is one of the DNS: it becomes that of a certificate.
fn check(bytes: &mut &[u8]) -> Option<DomainCheck> {
    let [len] = array(bytes)?;
    let name = std::str::from_utf8(slice(bytes, usize::from(len))?).ok()?;
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    let is_name = (1..=DomainCheck::LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_allowed);
    let name = is_name.then(|| name.to_owned())?;
    Some(DomainCheck { name, digest: array(bytes)?, expires: UnixSeconds(number(bytes)?) })
}

fn id(bytes: &mut &[u8]) -> Option<SessionId> {
    let [len] = array(bytes)?;
    SessionId::try_from(slice(bytes, usize::from(len))?).ok()
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    array(bytes).map(u64::from_be_bytes)
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    slice(bytes, N)?.try_into().ok()
}

fn slice<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(front)
}

/// Stands where the length of an ID would: no ID has 0 bytes.
const POLICY: u8 = 0;
const LAST: u8 = 1;
const END: u8 = 2;

#[cfg(test)]
mod tests;
