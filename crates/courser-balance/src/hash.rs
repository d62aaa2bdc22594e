//! Numbers that stand for bytes, the same on every host.

/// FNV-1a, finished by [`mix`]. The same on every host and in every version: clients of a fleet find the same server through
/// each of its hosts. Not for tables that a stranger can fill: here who finds a collision shares a server.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
