//! Key exchange groups that cost the client nothing and protect nothing.
//!
//! The private scalar is 1. Our share is then the group's generator, a constant, and the shared secret is the server's
//! own share, which is public: no arithmetic for the client, and the usual work for the server, which cannot notice.
//! X25519 has no such scalar on paper, since it sets a high bit (RFC 7748, section 5), but no server can check
//! how a share was computed: it multiplies the base point 9 that it is given by its own scalar and gets its own share again.

use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};

/// First byte of an uncompressed point (RFC 8446, section 4.2.8.2).
const UNCOMPRESSED: u8 = 4;

/// A group whose private scalar is always 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitScalarGroup {
    name: NamedGroup,
    /// The generator, encoded as a key share.
    generator: &'static [u8],
    /// Whether shares are points with two coordinates, of which the first is the secret.
    is_point: bool,
}

pub(super) static GROUPS: [UnitScalarGroup; 3] = [
    UnitScalarGroup { name: NamedGroup::secp256r1, generator: &P256, is_point: true },
    X25519_ALONE,
    UnitScalarGroup { name: NamedGroup::secp384r1, generator: &P384, is_point: true },
];

pub(super) const X25519_ALONE: UnitScalarGroup =
    UnitScalarGroup { name: NamedGroup::X25519, generator: &X25519, is_point: false };

impl UnitScalarGroup {
    /// The secret in the server's share.
    pub(super) fn secret(self, share: &[u8]) -> Result<&[u8], Error> {
        let fits = share.len() == self.generator.len() && (!self.is_point || share[0] == UNCOMPRESSED);
        match (fits, self.is_point) {
            (true, true) => Ok(&share[1..=share.len() / 2]),
            (true, false) => Ok(share),
            (false, _) => Err(PeerMisbehaved::InvalidKeyShare.into()),
        }
    }
}

impl SupportedKxGroup for UnitScalarGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(*self))
    }

    fn name(&self) -> NamedGroup {
        self.name
    }
}

impl ActiveKeyExchange for UnitScalarGroup {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.secret(share).map(SharedSecret::from)
    }

    fn pub_key(&self) -> &[u8] {
        self.generator
    }

    fn group(&self) -> NamedGroup {
        self.name
    }
}

/// The base point (RFC 7748, section 4.1).
pub(super) const X25519: [u8; 32] = {
    let mut point = [0; 32];
    point[0] = 9;
    point
};

/// The base point (NIST SP 800-186, section 3.2.1.3).
#[rustfmt::skip]
const P256: [u8; 65] = [
    UNCOMPRESSED, // and then x and y
    0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96,
    0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16,
    0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5,
];

/// The base point (NIST SP 800-186, section 3.2.1.4).
#[rustfmt::skip]
const P384: [u8; 97] = [
    UNCOMPRESSED, // and then x and y
    0xaa, 0x87, 0xca, 0x22, 0xbe, 0x8b, 0x05, 0x37, 0x8e, 0xb1, 0xc7, 0x1e, 0xf3, 0x20, 0xad, 0x74,
    0x6e, 0x1d, 0x3b, 0x62, 0x8b, 0xa7, 0x9b, 0x98, 0x59, 0xf7, 0x41, 0xe0, 0x82, 0x54, 0x2a, 0x38,
    0x55, 0x02, 0xf2, 0x5d, 0xbf, 0x55, 0x29, 0x6c, 0x3a, 0x54, 0x5e, 0x38, 0x72, 0x76, 0x0a, 0xb7,
    0x36, 0x17, 0xde, 0x4a, 0x96, 0x26, 0x2c, 0x6f, 0x5d, 0x9e, 0x98, 0xbf, 0x92, 0x92, 0xdc, 0x29,
    0xf8, 0xf4, 0x1d, 0xbd, 0x28, 0x9a, 0x14, 0x7c, 0xe9, 0xda, 0x31, 0x13, 0xb5, 0xf0, 0xb8, 0xc0,
    0x0a, 0x60, 0xb1, 0xce, 0x1d, 0x7e, 0x81, 0x9d, 0x7a, 0x43, 0x1d, 0x7c, 0x90, 0xea, 0x0e, 0x5f,
];
