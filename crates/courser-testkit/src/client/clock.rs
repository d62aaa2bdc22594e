//! A clock that always reads the moment of its creation.
//!
//! rustls gives a TLS 1.2 session without a ticket a lifetime of zero seconds, which ends when its clock's second
//! does: resumption by session ID would work or not by the time of day.

use rustls::{pki_types::UnixTime, time_provider::TimeProvider};

#[derive(Debug)]
pub(super) struct FixedClock(UnixTime);

impl FixedClock {
    pub(super) fn new() -> Self {
        Self(UnixTime::now())
    }
}

impl TimeProvider for FixedClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}
