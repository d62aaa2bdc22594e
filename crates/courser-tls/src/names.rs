//! Names of code points, as IANA's TLS registries spell them (groups as people do), and of our own key kinds.

/// Name of a protocol version.
pub fn version(code: u16) -> Option<&'static str> {
    Some(match code {
        0x0303 => "TLSv1.2",
        0x0304 => "TLSv1.3",
        _ => return None,
    })
}

/// Name of a cipher suite that courser can negotiate.
pub fn suite(code: u16) -> Option<&'static str> {
    Some(match code {
        0x1301 => "TLS_AES_128_GCM_SHA256",
        0x1302 => "TLS_AES_256_GCM_SHA384",
        0x1303 => "TLS_CHACHA20_POLY1305_SHA256",
        0xc02b => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        0xc02c => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        0xc02f => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        0xc030 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        0xcca8 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        0xcca9 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        _ => return None,
    })
}

/// Name of a key exchange group that courser can negotiate.
pub fn group(code: u16) -> Option<&'static str> {
    Some(match code {
        0x0017 => "P-256",
        0x0018 => "P-384",
        0x001d => "X25519",
        0x11ec => "X25519MLKEM768",
        _ => return None,
    })
}

/// Name of a signature scheme that courser can sign with.
pub fn scheme(code: u16) -> Option<&'static str> {
    Some(match code {
        0x0401 => "rsa_pkcs1_sha256",
        0x0501 => "rsa_pkcs1_sha384",
        0x0601 => "rsa_pkcs1_sha512",
        0x0403 => "ecdsa_secp256r1_sha256",
        0x0503 => "ecdsa_secp384r1_sha384",
        0x0603 => "ecdsa_secp521r1_sha512",
        0x0804 => "rsa_pss_rsae_sha256",
        0x0805 => "rsa_pss_rsae_sha384",
        0x0806 => "rsa_pss_rsae_sha512",
        0x0807 => "ed25519",
        _ => return None,
    })
}
