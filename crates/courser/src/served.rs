//! What a generation serves, for the status.

use std::sync::Arc;

use courser_config::{Config, ListenerConfig};

use crate::certificates::{CertificateEnd, LoadedCertificates};
use crate::status;

/// Listeners, and certificates by their ends.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) listeners: Arc<[status::ServedListener]>,
    /// Those that end first in front.
    pub(crate) certificates: Arc<[CertificateEnd]>,
}

impl Served {
    pub(crate) fn of(config: &Config, certificates: &LoadedCertificates) -> Self {
        let listener = |listener: &ListenerConfig| status::ServedListener {
            name: listener.name.clone(),
            listen: listener.listen.iter().map(ToString::to_string).collect(),
        };
        let listeners = config.listeners.iter().map(listener).collect();
        Self { listeners, certificates: certificates.by_end().into() }
    }
}
