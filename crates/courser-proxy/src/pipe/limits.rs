//! How long a relay may wait, for what, and how old it may become.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use courser_telemetry::CloseReason;

use super::{Flow, Pipe};

/// What the connection waits for, and so how long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// A byte, from either side.
    Byte,
    /// The backend's end, as the client has ended.
    BackendEnd,
    /// The client's end, as the backend has ended.
    ClientEnd,
}

impl Pipe {
    /// Moves the deadline when what it waits for has come, or something else is waited for. Where one side has ended,
    /// only bytes that are delivered count: what is received and leads to nothing could come for ever.
    pub(super) fn move_deadline(&mut self) {
        let wait = match (self.upward, self.downward) {
            (Flow::Open, Flow::Open) if self.backend_write_error.is_none() => Wait::Byte,
            (_, Flow::Open) => Wait::BackendEnd,
            _ => Wait::ClientEnd,
        };
        let (moved, delivered) = (std::mem::take(&mut self.moved), std::mem::take(&mut self.delivered));
        if wait != self.wait || delivered || (moved && wait == Wait::Byte) {
            self.wait = wait;
            self.set_deadline();
        }
    }

    pub(super) fn set_deadline(&self) {
        let timeout = self.timeout();
        let first = if self.keepalive_on { timeout } else { timeout.min(self.host.liveness.keepalive) };
        self.client.deadline.set(self.age_left().map_or(first, |left| left.min(first)));
    }

    fn timeout(&self) -> Duration {
        let host = &self.host;
        match self.wait {
            Wait::Byte => host.idle_timeout,
            Wait::BackendEnd => host.client_fin_timeout.min(host.idle_timeout),
            Wait::ClientEnd => host.backend_fin_timeout.min(host.idle_timeout),
        }
    }

    /// The deadline has two halves: after the first the kernel is told to find out whether the backend is still there. That
    /// costs system calls, of which a connection whose bytes move needs none. (Clients' sockets inherit it.)
    pub(super) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        loop {
            ready!(self.client.deadline.poll_expired(cx));
            let left = self.timeout().saturating_sub(self.host.liveness.keepalive);
            if self.keepalive_on || left.is_zero() || self.is_too_old() {
                return Poll::Ready(self.expired());
            }
            self.keepalive_on = true;
            self.backend.set_liveness(&self.host.liveness);
            self.client.deadline.set(self.age_left().map_or(left, |age| age.min(left)));
        }
    }

    /// How much longer the connection may stay, where that is limited.
    fn age_left(&self) -> Option<Duration> {
        let limit = self.host.max_connection_age?;
        Some(limit.saturating_sub(self.client.account.age()))
    }

    pub(super) fn is_too_old(&self) -> bool {
        self.age_left().is_some_and(|left| left.is_zero())
    }

    pub(super) fn expired(&self) -> CloseReason {
        match self.wait {
            _ if self.backend_reset => CloseReason::BackendReset,
            _ if self.is_too_old() => CloseReason::MaxConnectionAge,
            Wait::Byte => CloseReason::IdleTimeout,
            Wait::BackendEnd if self.backend_write_error.is_some() => CloseReason::BackendReset,
            Wait::BackendEnd => CloseReason::ClientFinTimeout,
            Wait::ClientEnd => CloseReason::BackendFinTimeout,
        }
    }
}
