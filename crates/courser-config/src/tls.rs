//! Names and code points of what TLS negotiates, and the two profiles that group them.

use std::fmt;

use crate::named::{Named, named};

named! {
    /// A version of TLS.
    #[derive(PartialOrd, Ord)]
    TlsVersion {
        /// RFC 5246.
        Tls12 = "1.2" | "TLSv1.2" | "TLS1.2" | "TLS 1.2",
        /// RFC 8446.
        Tls13 = "1.3" | "TLSv1.3" | "TLS1.3" | "TLS 1.3",
    }
}

impl TlsVersion {
    /// The code point on the wire (`ProtocolVersion`, RFC 8446, section 4.1.2).
    pub fn code(self) -> u16 {
        match self {
            Self::Tls12 => 0x0303,
            Self::Tls13 => 0x0304,
        }
    }
}

named! {
    /// A cipher suite, by its IANA name and by OpenSSL's, which are the same for TLS 1.3.
    #[expect(non_camel_case_types, reason = "IANA's spelling is what people search for")]
    Suite {
        /// TLS 1.3.
        TLS_AES_128_GCM_SHA256 = "TLS_AES_128_GCM_SHA256",
        /// TLS 1.3.
        TLS_AES_256_GCM_SHA384 = "TLS_AES_256_GCM_SHA384",
        /// TLS 1.3.
        TLS_CHACHA20_POLY1305_SHA256 = "TLS_CHACHA20_POLY1305_SHA256",
        /// TLS 1.2.
        TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 =
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" | "ECDHE-ECDSA-AES128-GCM-SHA256",
        /// TLS 1.2.
        TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 =
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" | "ECDHE-RSA-AES128-GCM-SHA256",
        /// TLS 1.2.
        TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 =
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" | "ECDHE-ECDSA-AES256-GCM-SHA384",
        /// TLS 1.2.
        TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 =
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" | "ECDHE-RSA-AES256-GCM-SHA384",
        /// TLS 1.2.
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 =
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256" | "ECDHE-ECDSA-CHACHA20-POLY1305",
        /// TLS 1.2.
        TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 =
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" | "ECDHE-RSA-CHACHA20-POLY1305",
    }
}

impl Suite {
    /// The code point in IANA's registry "TLS Cipher Suites".
    pub fn code(self) -> u16 {
        match self {
            Self::TLS_AES_128_GCM_SHA256 => 0x1301,
            Self::TLS_AES_256_GCM_SHA384 => 0x1302,
            Self::TLS_CHACHA20_POLY1305_SHA256 => 0x1303,
            Self::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => 0xc02b,
            Self::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => 0xc02f,
            Self::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => 0xc02c,
            Self::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => 0xc030,
            Self::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => 0xcca9,
            Self::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => 0xcca8,
        }
    }

    /// The only version of TLS that can negotiate it (RFC 8446, section 1.2).
    pub fn version(self) -> TlsVersion {
        match self.code() {
            0x1300..=0x13ff => TlsVersion::Tls13,
            _ => TlsVersion::Tls12,
        }
    }
}

named! {
    /// A key exchange group.
    Group {
        /// The hybrid of ML-KEM-768 and X25519 (draft-ietf-tls-ecdhe-mlkem); TLS 1.3 only.
        X25519MlKem768 = "X25519MLKEM768",
        /// RFC 7748.
        X25519 = "X25519",
        /// NIST P-256, secp256r1.
        P256 = "P-256" | "secp256r1" | "prime256v1" | "P256",
        /// NIST P-384, secp384r1.
        P384 = "P-384" | "secp384r1" | "P384",
    }
}

impl Group {
    /// The code point in IANA's registry "TLS Supported Groups".
    pub fn code(self) -> u16 {
        match self {
            Self::X25519MlKem768 => 0x11ec,
            Self::X25519 => 0x001d,
            Self::P256 => 0x0017,
            Self::P384 => 0x0018,
        }
    }

    /// Whether that version of TLS can negotiate it: a key encapsulation has no form in TLS 1.2.
    pub fn works_with(self, version: TlsVersion) -> bool {
        self != Self::X25519MlKem768 || version == TlsVersion::Tls13
    }
}

named! {
    /// A named choice of versions, suites and groups: Mozilla's Server Side TLS guideline, version 6.0.
    ///
    /// Both profiles allow the suites of [`Suite::ALL`](Named::ALL) that fit their versions, and the groups of
    /// [`Group::ALL`](Named::ALL), each in that order: AES-128-GCM stands first because a suite with SHA-384
    /// costs some 25 us more per handshake, and ChaCha20 is for clients that ask for it first.
    #[derive(Default)]
    Profile {
        /// TLS 1.3 only.
        Modern = "modern",
        /// TLS 1.2 with forward secrecy and AEAD, and TLS 1.3.
        #[default]
        Intermediate = "intermediate",
    }
}

impl Profile {
    /// The versions it allows, ascending.
    pub fn versions(self) -> &'static [TlsVersion] {
        match self {
            Self::Modern => &[TlsVersion::Tls13],
            Self::Intermediate => &[TlsVersion::Tls12, TlsVersion::Tls13],
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS {}", self.name())
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
