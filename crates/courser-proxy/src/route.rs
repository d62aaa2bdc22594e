//! What becomes of a connection, by its ClientHello: the one place where that is decided.

mod conditions;

use std::sync::Arc;

use courser_telemetry::{Close, CloseReason};
use courser_wire::alert::Description;

use crate::buffers::Outbox;
use crate::classify::Classified;
use crate::client::{EarlyClose, alert};
use crate::handshake::Secured;
use crate::settings::{Action, Forwarding, VirtualHost};
use crate::side::Side;

/// Where a connection goes.
pub(crate) enum Route {
    /// TLS ends here, as this host.
    Terminate(Arc<VirtualHost>),
    /// To a backend, as it came.
    Relay(Arc<Forwarding>),
    /// Nowhere.
    Refuse(CloseReason, Description),
}

/// Decides by the first rule of the listener that fits; where there is none, by the server name.
pub(crate) fn route(classified: &Classified) -> Route {
    let listener = &classified.client.listener;
    // Most listeners have no rules, and their clients pay for none.
    if !listener.rules.is_empty()
        && let Some(rule) = listener.rules.iter().find(|rule| conditions::hold(&rule.when, classified))
    {
        return match &rule.action {
            Action::Terminate(host) => Route::Terminate(Arc::clone(host)),
            Action::Relay(forwarding) => Route::Relay(Arc::clone(forwarding)),
            Action::Refuse => Route::Refuse(CloseReason::RefusedByRule, Description::AccessDenied),
        };
    }
    match listener.host(classified.offer.name.as_deref()) {
        Some(host) => Route::Terminate(Arc::clone(host)),
        None => Route::Refuse(CloseReason::UnknownName, Description::UnrecognizedName),
    }
}

/// A connection whose TLS is its backend's: what has come of it so far is the first that the backend gets.
pub(crate) fn relay(classified: Classified, forwarding: Arc<Forwarding>) -> Secured {
    let Classified { mut client, mut received, .. } = classified;
    // It may wait for its backend for a while.
    received.settle(&client.worker.buffers);
    client.account.relayed(Arc::clone(&forwarding));
    let side = Side::plain(Outbox::default());
    Secured { client, forwarding, side, plaintext: received.into_bytes(), client_closed: false }
}

/// Ends a connection that goes nowhere.
pub(crate) fn refuse(
    classified: Classified,
    close: impl Into<Close>,
    description: Description,
) -> Box<EarlyClose> {
    let Classified { client, received, .. } = classified;
    received.discard(&client.worker.buffers);
    client.close_with(close, alert(description))
}
