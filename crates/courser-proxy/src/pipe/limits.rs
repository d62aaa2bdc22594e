//! How long a pipe may wait, for what, and how old it may become.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::client::Client;
use crate::request::Request;
use crate::settings::VirtualHost;

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
    pub(super) fn new(host: &VirtualHost, client: &Client) -> Self {
        let limits = Self { wait: Wait::Byte, moved: false, delivered: false, keepalive_on: false };
        limits.set_deadline(host, client);
        limits
    }

    /// Moves the deadline when what it waits for has come, or something else is waited for. Where one side has ended,
    /// only bytes that are delivered count: what is received and leads to nothing could come for ever.
    pub(super) fn move_deadline(&mut self, wait: Wait, host: &VirtualHost, client: &Client) {
        let (moved, delivered) = (std::mem::take(&mut self.moved), std::mem::take(&mut self.delivered));
        if wait != self.wait || delivered || (moved && wait == Wait::Byte) {
            self.wait = wait;
            self.set_deadline(host, client);
        }
    }

    fn set_deadline(&self, host: &VirtualHost, client: &Client) {
        let timeout = self.timeout(host);
        let first = if self.keepalive_on { timeout } else { timeout.min(host.liveness.keepalive) };
        client.deadline.set(age_left(host, client).map_or(first, |left| left.min(first)));
    }

    fn timeout(&self, host: &VirtualHost) -> Duration {
        match self.wait {
            Wait::Byte => host.idle_timeout,
            Wait::BackendEnd => host.client_fin_timeout.min(host.idle_timeout),
            Wait::ClientEnd => host.backend_fin_timeout.min(host.idle_timeout),
        }
    }

    /// Ready when the time is over. The deadline has two halves: after the first the kernel is made to find out whether the
    /// backend is still there. That costs system calls, of which a connection whose bytes move needs none. (Clients'
    /// sockets inherit it.)
    pub(super) fn poll_deadline(
        &mut self,
        host: &VirtualHost,
        client: &Client,
        backend: &Request,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            ready!(client.deadline.poll_expired(cx));
            let left = self.timeout(host).saturating_sub(host.liveness.keepalive);
            if self.keepalive_on || left.is_zero() || is_too_old(host, client) {
                return Poll::Ready(());
            }
            self.keepalive_on = true;
            backend.set_liveness(&host.liveness);
            client.deadline.set(age_left(host, client).map_or(left, |age| age.min(left)));
        }
    }
}

/// How much longer the connection may stay, where that is limited.
fn age_left(host: &VirtualHost, client: &Client) -> Option<Duration> {
    Some(host.max_connection_age?.saturating_sub(client.account.age()))
}

pub(super) fn is_too_old(host: &VirtualHost, client: &Client) -> bool {
    age_left(host, client).is_some_and(|left| left.is_zero())
}
