//! How long a pipe may wait, for what, and how old it may become.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::client::Client;
use crate::request::Request;
use crate::settings::Forwarding;

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

/// The deadline of a pipe, and what has happened since it was set.
pub(super) struct Limits {
    pub(super) wait: Wait,
    /// Bytes have come since the deadline was set.
    pub(super) moved: bool,
    /// Bytes were delivered since the deadline was set.
    pub(super) delivered: bool,
    /// The kernel watches the backend.
    keepalive_on: bool,
}

impl Limits {
    /// The limits of a pipe that begins now.
    pub(super) fn new(forwarding: &Forwarding, client: &Client) -> Self {
        let limits = Self { wait: Wait::Byte, moved: false, delivered: false, keepalive_on: false };
        limits.set_deadline(forwarding, client);
        limits
    }

    /// Moves the deadline when what it waits for has come, or something else is waited for. Where one side has ended,
    /// only bytes that are delivered count: what is received and leads to nothing could come for ever.
    pub(super) fn move_deadline(&mut self, wait: Wait, forwarding: &Forwarding, client: &Client) {
        let (moved, delivered) = (std::mem::take(&mut self.moved), std::mem::take(&mut self.delivered));
        if wait != self.wait || delivered || (moved && wait == Wait::Byte) {
            self.wait = wait;
            self.set_deadline(forwarding, client);
        }
    }

    fn set_deadline(&self, forwarding: &Forwarding, client: &Client) {
        let timeout = self.timeout(forwarding);
        let first = if self.keepalive_on { timeout } else { timeout.min(forwarding.liveness.keepalive) };
        client.deadline.set(age_left(forwarding, client).map_or(first, |left| left.min(first)));
    }

    fn timeout(&self, forwarding: &Forwarding) -> Duration {
        match self.wait {
            Wait::Byte => forwarding.idle_timeout,
            Wait::BackendEnd => forwarding.client_fin_timeout.min(forwarding.idle_timeout),
            Wait::ClientEnd => forwarding.backend_fin_timeout.min(forwarding.idle_timeout),
        }
    }

    /// Ready when the time is over. The deadline has two halves: after the first the kernel is made to find out whether the
    /// backend is still there. That costs system calls, of which a connection whose bytes move needs none. (Clients'
    /// sockets inherit it.)
    pub(super) fn poll_deadline(
        &mut self,
        forwarding: &Forwarding,
        client: &Client,
        backend: &Request,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            ready!(client.deadline.poll_expired(cx));
            let left = self.timeout(forwarding).saturating_sub(forwarding.liveness.keepalive);
            if self.keepalive_on || left.is_zero() || is_too_old(forwarding, client) {
                return Poll::Ready(());
            }
            self.keepalive_on = true;
            backend.set_liveness(&forwarding.liveness);
            client.deadline.set(age_left(forwarding, client).map_or(left, |age| age.min(left)));
        }
    }
}

/// How much longer the connection may stay, where that is limited.
fn age_left(forwarding: &Forwarding, client: &Client) -> Option<Duration> {
    Some(forwarding.max_connection_age?.saturating_sub(client.account.age()))
}

pub(super) fn is_too_old(forwarding: &Forwarding, client: &Client) -> bool {
    age_left(forwarding, client).is_some_and(|left| left.is_zero())
}
