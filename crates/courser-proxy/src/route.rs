//! What becomes of a connection, by its ClientHello: the one place where that is decided.

use std::sync::Arc;

use courser_telemetry::CloseReason;
use courser_wire::alert::Description;

use crate::classify::Classified;
use crate::client::{EarlyClose, alert};
use crate::settings::VirtualHost;

/// Where a connection goes.
pub(crate) enum Route {
    /// TLS ends here, as this host.
    Terminate(Arc<VirtualHost>),
    /// Nowhere: no host here serves the name.
    Refuse,
}

/// Decides by the server name.
pub(crate) fn route(classified: &Classified) -> Route {
    let host = classified.client.listener.host(classified.offer.name.as_deref());
    host.map_or(Route::Refuse, |host| Route::Terminate(Arc::clone(host)))
}

/// Ends a connection that goes nowhere.
pub(crate) fn refuse(classified: Classified) -> Box<EarlyClose> {
    let Classified { client, received, .. } = classified;
    received.discard(&client.worker.buffers);
    client.close_with(CloseReason::UnknownName, alert(Description::UnrecognizedName))
}
