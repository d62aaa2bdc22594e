//! How a member that starts fills its cache from another's, a part at a time. May not request more than it has stored:
//! one request is open at a time.

use courser_session::Cursor;

use crate::content::Part;
use crate::peers::Peers;
use crate::refusal::Refusal;
use crate::status::StateTransferStatus;

/// How far a state transfer is.
pub(crate) struct StateTransfer {
    stage: Stage,
    /// Whom the request before was put to, and from where on: parts that others have overtaken are still welcome.
    before: Option<(usize, u64)>,
    /// Places of the peers that fell silent, as bits.
    tried: u64,
    taken: u64,
    started: u64,
}

enum Stage {
    /// For peers to answer a challenge and to send how many sessions they have.
    Waiting {
        until: u64,
    },
    /// For the answer to a request.
    Requested(PartRequest),
    Over(StateTransferStatus),
}

/// A request that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartRequest {
    /// Whom it was put to.
    pub(crate) place: usize,
    /// From where on.
    pub(crate) from: u64,
    requested_at: u64,
    /// How often it was asked before.
    repeats: u32,
    /// Once there was some of the answer: when the next request is due, and from where on it asks.
    next: Option<(u64, u64)>,
    /// Whether the last part of the answer has come; others may follow it.
    is_answered: bool,
}

impl StateTransfer {
    /// The state transfer of a member that starts at `mono`.
    pub(crate) fn new(is_wanted: bool, mono: u64) -> Self {
        let stage = match is_wanted {
            true => Stage::Waiting { until: mono.saturating_add(FIRST_HEARTBEATS_MS) },
            false => Stage::Over(StateTransferStatus::Disabled),
        };
        Self { stage, before: None, tried: 0, taken: 0, started: mono }
    }

    /// The request to ask now, if there is one.
    pub(crate) fn tick(&mut self, peers: &Peers, mono: u64) -> Option<PartRequest> {
        match self.stage {
            Stage::Waiting { until } if mono >= until => self.choose(peers, mono),
            Stage::Requested(request) if mono >= request.due() => self.go_on(request, peers, mono),
            _ => None,
        }
    }

    /// Takes note of a part.
    pub(crate) fn part(&mut self, place: usize, part: &Part, mono: u64) -> Result<(), Refusal> {
        let answered = Some((place, part.asked));
        let is_open = answered == self.open();
        if !is_open && answered != self.before {
            return Err(Refusal::Unsolicited);
        }
        self.taken += part.sessions.len() as u64;
        if is_open {
            self.progress(part, mono);
        }
        Ok(())
    }

    /// Whom the open request was put to, and from where on.
    fn open(&self) -> Option<(usize, u64)> {
        match self.stage {
            Stage::Requested(request) => Some((request.place, request.from)),
            Stage::Waiting { .. } | Stage::Over(_) => None,
        }
    }

    fn progress(&mut self, part: &Part, mono: u64) {
        match &mut self.stage {
            Stage::Requested(_) if part.is_end => self.enter(Stage::Over(StateTransferStatus::Done)),
            Stage::Requested(request) if part.is_last => {
                request.is_answered = true;
                request.next = Some((request.requested_at.saturating_add(PACE_MS), part.next));
            }
            Stage::Requested(request) if !request.is_answered => {
                request.next = Some((mono.saturating_add(REST_MS), part.next));
            }
            Stage::Requested(_) | Stage::Waiting { .. } | Stage::Over(_) => {}
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.before = self.open();
        self.stage = stage;
    }

    /// After an answer the next request; after none the same again, and then another peer.
    fn go_on(&mut self, request: PartRequest, peers: &Peers, mono: u64) -> Option<PartRequest> {
        let PartRequest { place, from, repeats, .. } = request;
        match request.next {
            Some((_, next)) => Some(self.ask(place, next, 0, mono)),
            None if repeats < REPEATS => Some(self.ask(place, from, repeats + 1, mono)),
            None => {
                self.tried |= 1 << place;
                self.choose(peers, mono)
            }
        }
    }

    fn choose(&mut self, peers: &Peers, mono: u64) -> Option<PartRequest> {
        if let Some(place) = peers.richest(self.tried, mono) {
            return Some(self.ask(place, Cursor::START.to_u64(), 0, mono));
        }
        self.tried = 0;
        self.enter(match mono.saturating_sub(self.started) < GIVE_UP_MS {
            true => Stage::Waiting { until: mono.saturating_add(AGAIN_MS) },
            false => Stage::Over(StateTransferStatus::NoPeer),
        });
        None
    }

    fn ask(&mut self, place: usize, from: u64, repeats: u32, mono: u64) -> PartRequest {
        let request =
            PartRequest { place, from, requested_at: mono, repeats, next: None, is_answered: false };
        self.enter(Stage::Requested(request));
        request
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn due(&self) -> Option<u64> {
        match self.stage {
            Stage::Waiting { until } => Some(until),
            Stage::Requested(request) => Some(request.due()),
            Stage::Over(_) => None,
        }
    }

    pub(crate) fn status(&self) -> StateTransferStatus {
        match self.stage {
            Stage::Waiting { .. } => StateTransferStatus::Waiting,
            Stage::Requested(_) => StateTransferStatus::Running,
            Stage::Over(how) => how,
        }
    }

    /// How many sessions have come.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }
}

impl PartRequest {
    fn due(&self) -> u64 {
        self.next.map_or(self.requested_at.saturating_add(REPEAT_MS), |(due, _)| due)
    }
}

/// How many parts answer a request: a hundred sessions or so, and few enough that no buffer overflows.
pub(crate) const PARTS_PER_QUESTION: usize = 16;

/// Everybody has sent a heartbeat by then, and a second one if the first came before the proof.
const FIRST_HEARTBEATS_MS: u64 = 1500;
/// At least so long between two requests: some 50,000 sessions a second, which leave the peer time for its clients.
const PACE_MS: u64 = 2;
/// How long a lost part is waited for.
const REST_MS: u64 = 20;
/// After which a request is asked again, and so often: another peer is asked after a second of silence.
const REPEAT_MS: u64 = 250;
const REPEATS: u32 = 3;
/// How often to look for a peer that can be asked.
const AGAIN_MS: u64 = 1000;
/// After which there is nothing that would still be of use.
const GIVE_UP_MS: u64 = 60_000;
