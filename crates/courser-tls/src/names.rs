//! Names of code points, as IANA's TLS registries spell them (groups as people do), and code points of names.

mod suites;

use suites::SUITES;

/// Name of a protocol version.
pub fn version(code: u16) -> Option<&'static str> {
    name_in(VERSIONS, code)
}

/// Name of a cipher suite, as IANA's registry has it.
pub fn suite(code: u16) -> Option<&'static str> {
    suite_row(code).map(|row| row.1)
}

/// Name of a cipher suite, as OpenSSL's lists of ciphers have it.
pub fn openssl_suite(code: u16) -> Option<&'static str> {
    suite_row(code).map(|row| row.2)
}

/// Name of a key exchange group.
pub fn group(code: u16) -> Option<&'static str> {
    name_in(GROUPS, code)
}

/// Name of a signature scheme.
pub fn scheme(code: u16) -> Option<&'static str> {
    name_in(SCHEMES, code)
}

/// Name of a signature scheme in OpenSSL's lists, where it has one of its own: `ECDSA+SHA256`.
pub fn openssl_scheme(code: u16) -> Option<&'static str> {
    SCHEMES.iter().find(|row| row.0 == code).and_then(|row| row.2.first().copied())
}

/// Code point of a version: `TLSv1.2`, `TLS1.2` or `1.2`.
pub fn version_code(name: &str) -> Option<u16> {
    code_in(VERSIONS, name)
}

/// Code point of a cipher suite by its IANA or its OpenSSL name, whatever the case of its letters.
pub fn suite_code(name: &str) -> Option<u16> {
    let named = |row: &&(u16, &str, &str)| same(row.1, name) || same(row.2, name);
    SUITES.iter().find(named).map(|row| row.0)
}

/// Code point of a key exchange group by any of its usual names: `P-256`, `secp256r1`, `prime256v1`.
pub fn group_code(name: &str) -> Option<u16> {
    code_in(GROUPS, name)
}

/// Code point of a signature scheme by its name in RFC 8446, section 4.2.3, or OpenSSL's: `ECDSA+SHA256`.
pub fn scheme_code(name: &str) -> Option<u16> {
    code_in(SCHEMES, name)
}

/// Every version that has a name, oldest first, for the message about one that has none.
pub fn versions() -> impl Iterator<Item = (u16, &'static str)> + Clone {
    rows(VERSIONS)
}

/// Every cipher suite that has a name, in ascending order of code points.
pub fn suites() -> impl Iterator<Item = (u16, &'static str)> + Clone {
    SUITES.iter().map(|row| (row.0, row.1))
}

/// Every key exchange group that has a name, in ascending order of code points.
pub fn groups() -> impl Iterator<Item = (u16, &'static str)> + Clone {
    rows(GROUPS)
}

/// Every signature scheme that has a name, in ascending order of code points.
pub fn schemes() -> impl Iterator<Item = (u16, &'static str)> + Clone {
    rows(SCHEMES)
}

/// Code point, the name that is shown, names that are understood as well.
type Row = (u16, &'static str, &'static [&'static str]);

fn rows(table: &'static [Row]) -> impl Iterator<Item = (u16, &'static str)> + Clone {
    table.iter().map(|row| (row.0, row.1))
}

fn name_in(table: &[Row], code: u16) -> Option<&'static str> {
    table.iter().find(|row| row.0 == code).map(|row| row.1)
}

fn code_in(table: &[Row], name: &str) -> Option<u16> {
    let named = |row: &&Row| same(row.1, name) || row.2.iter().any(|other| same(other, name));
    table.iter().find(named).map(|row| row.0)
}

fn suite_row(code: u16) -> Option<&'static (u16, &'static str, &'static str)> {
    // Every line of courser's log looks up one of a hundred and twenty.
    SUITES.binary_search_by_key(&code, |row| row.0).ok().map(|index| &SUITES[index])
}

fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

const VERSIONS: &[Row] = &[
    (0x0301, "TLSv1.0", &["TLSv1", "TLS1.0", "1.0"]),
    (0x0302, "TLSv1.1", &["TLS1.1", "1.1"]),
    (0x0303, "TLSv1.2", &["TLS1.2", "1.2"]),
    (0x0304, "TLSv1.3", &["TLS1.3", "1.3"]),
];

const GROUPS: &[Row] = &[
    (0x0015, "P-224", &["secp224r1"]),
    (0x0016, "secp256k1", &[]),
    (0x0017, "P-256", &["P256", "secp256r1", "prime256v1"]),
    (0x0018, "P-384", &["P384", "secp384r1"]),
    (0x0019, "P-521", &["P521", "secp521r1"]),
    (0x001a, "brainpoolP256r1", &[]),
    (0x001b, "brainpoolP384r1", &[]),
    (0x001c, "brainpoolP512r1", &[]),
    (0x001d, "X25519", &[]),
    (0x001e, "X448", &[]),
    (0x001f, "brainpoolP256r1tls13", &[]),
    (0x0020, "brainpoolP384r1tls13", &[]),
    (0x0021, "brainpoolP512r1tls13", &[]),
    (0x0100, "ffdhe2048", &[]),
    (0x0101, "ffdhe3072", &[]),
    (0x0102, "ffdhe4096", &[]),
    (0x0103, "ffdhe6144", &[]),
    (0x0104, "ffdhe8192", &[]),
    (0x0200, "MLKEM512", &[]),
    (0x0201, "MLKEM768", &[]),
    (0x0202, "MLKEM1024", &[]),
    (0x11eb, "SecP256r1MLKEM768", &[]),
    (0x11ec, "X25519MLKEM768", &[]),
    (0x11ed, "SecP384r1MLKEM1024", &[]),
    (0x6399, "X25519Kyber768Draft00", &[]),
];

const SCHEMES: &[Row] = &[
    (0x0201, "rsa_pkcs1_sha1", &["RSA+SHA1"]),
    (0x0202, "dsa_sha1", &["DSA+SHA1"]),
    (0x0203, "ecdsa_sha1", &["ECDSA+SHA1"]),
    (0x0301, "rsa_pkcs1_sha224", &["RSA+SHA224"]),
    (0x0302, "dsa_sha224", &["DSA+SHA224"]),
    (0x0303, "ecdsa_sha224", &["ECDSA+SHA224"]),
    (0x0401, "rsa_pkcs1_sha256", &["RSA+SHA256"]),
    (0x0402, "dsa_sha256", &["DSA+SHA256"]),
    (0x0403, "ecdsa_secp256r1_sha256", &["ECDSA+SHA256"]),
    (0x0501, "rsa_pkcs1_sha384", &["RSA+SHA384"]),
    (0x0503, "ecdsa_secp384r1_sha384", &["ECDSA+SHA384"]),
    (0x0601, "rsa_pkcs1_sha512", &["RSA+SHA512"]),
    (0x0603, "ecdsa_secp521r1_sha512", &["ECDSA+SHA512"]),
    (0x0804, "rsa_pss_rsae_sha256", &["RSA-PSS+SHA256"]),
    (0x0805, "rsa_pss_rsae_sha384", &["RSA-PSS+SHA384"]),
    (0x0806, "rsa_pss_rsae_sha512", &["RSA-PSS+SHA512"]),
    (0x0807, "ed25519", &[]),
    (0x0808, "ed448", &[]),
    (0x0809, "rsa_pss_pss_sha256", &[]),
    (0x080a, "rsa_pss_pss_sha384", &[]),
    (0x080b, "rsa_pss_pss_sha512", &[]),
    (0x0904, "mldsa44", &[]),
    (0x0905, "mldsa65", &[]),
    (0x0906, "mldsa87", &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_leads_back_to_its_code() {
        assert!(versions().all(|(code, name)| version_code(name) == Some(code)));
        assert!(groups().all(|(code, name)| group_code(name) == Some(code) && group(code) == Some(name)));
        assert!(schemes().all(|(code, name)| scheme_code(name) == Some(code) && scheme(code) == Some(name)));
        for (code, name) in suites() {
            assert_eq!((suite_code(name), suite(code)), (Some(code), Some(name)));
            assert_eq!(openssl_suite(code).and_then(suite_code), Some(code));
        }
    }

    #[test]
    fn suites_are_known_by_both_names_in_any_case() {
        assert_eq!(suite_code("tls_rsa_with_aes_128_cbc_sha"), Some(0x002f));
        assert_eq!(suite_code("AES128-SHA"), Some(0x002f));
        assert_eq!(suite_code("ECDHE-RSA-CHACHA20-POLY1305"), Some(0xcca8));
        assert_eq!(suite_code("AES128-SH"), None);
    }

    #[test]
    fn other_names_are_understood_and_not_shown() {
        assert_eq!(group_code("prime256v1"), Some(0x0017));
        assert_eq!(version_code("1.0"), Some(0x0301));
        assert_eq!(scheme_code("ecdsa+sha256"), Some(0x0403));
        assert_eq!(scheme(0x0403), Some("ecdsa_secp256r1_sha256"));
    }

    #[test]
    fn the_table_of_suites_is_in_order() {
        assert!(SUITES.is_sorted_by(|one, next| one.0 < next.0));
    }
}
