//! What a generation serves, for the status.

use std::path::PathBuf;
use std::sync::Arc;

use courser_config::{Config, ListenerConfig};
use courser_tls::StapleError;

use crate::certificates::{CertificateEnd, LoadedCertificates};
use crate::status;

/// Listeners, and certificates by their ends.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) listeners: Arc<[status::ServedListener]>,
    /// Those that end first in front.
    pub(crate) certificates: Arc<[CertificateEnd]>,
    /// Staples that are not sent.
    pub(crate) refused_staples: Arc<[status::RefusedStaple]>,
}

impl Served {
    pub(crate) fn of(config: &Config, certificates: &LoadedCertificates) -> Self {
        let listener = |listener: &Arc<ListenerConfig>| status::ServedListener {
            name: listener.name.clone(),
            listen: listener.listen.iter().map(ToString::to_string).collect(),
        };
        let listeners = config.listeners.iter().map(listener).collect();
        let refused = |(file, why): &(PathBuf, StapleError)| status::RefusedStaple {
            file: file.display().to_string(),
            why: why.to_string(),
        };
        let refused_staples = certificates.refused_staples().iter().map(refused).collect();
        Self { listeners, certificates: certificates.by_end().into(), refused_staples }
    }
}
