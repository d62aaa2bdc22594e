//! Names of the times that are taken: the one place for them. Keys of [`crate::Totals::times`].

/// From when a request should have started to its last byte: what users wait.
pub const RESPONSE_INTENDED: &str = "response_intended";

/// From when a request did start to its last byte: the service time.
pub const RESPONSE_ACTUAL: &str = "response_actual";

/// From when a connection should have started to when it did.
pub const SCHEDULE_LAG: &str = "schedule_lag";

/// From the last byte of a connection's last answer to the end of the connection.
pub const LINGERING: &str = "lingering";

/// Times of a connection whose handshake was full, in the order in which they end.
pub const FULL: [&str; 6] = [
    "full_connect",
    "full_server_hello",
    "full_handshake",
    "full_confirmed",
    "full_first_byte",
    "full_last_byte",
];

/// Times of a connection whose session was resumed, in the order in which they end.
pub const RESUMED: [&str; 6] = [
    "resumed_connect",
    "resumed_server_hello",
    "resumed_handshake",
    "resumed_confirmed",
    "resumed_first_byte",
    "resumed_last_byte",
];

/// A moment of a connection; all count from the start of its TCP connect. The index into [`FULL`] and [`RESUMED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The TCP connection stands.
    Connect,
    /// The `ServerHello` is here.
    ServerHello,
    /// The client's handshake is done.
    Handshake,
    /// First sign that the server has checked the client's Finished: a TLS 1.3 client is done before.
    Confirmed,
    /// First byte of the answer.
    FirstByte,
    /// Last byte of the answer.
    LastByte,
}

/// The name of a moment's time.
pub const fn name(moment: Moment, resumed: bool) -> &'static str {
    let names = if resumed { &RESUMED } else { &FULL };
    names[moment as usize]
}

/// All names, in the order of a report.
pub fn all() -> impl Iterator<Item = &'static str> {
    [RESPONSE_INTENDED, RESPONSE_ACTUAL, SCHEDULE_LAG, LINGERING].into_iter().chain(FULL).chain(RESUMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_its_own_name() {
        assert_eq!(name(Moment::Connect, false), "full_connect");
        assert_eq!(name(Moment::LastByte, true), "resumed_last_byte");
        assert_eq!(all().collect::<std::collections::BTreeSet<_>>().len(), 16);
    }
}
