//! OpenSSL's names for what TLS negotiates: cipher strings (openssl-ciphers(1)), lists of TLS 1.3 suites, groups.

/// A suite of TLS 1.2 that courser has, with the words of cipher strings that mean it among others.
struct Suite {
    iana: &'static str,
    name: &'static str,
    words: &'static [&'static str],
    /// Bits of the key, for `@STRENGTH`.
    bits: u32,
}

/// Words that mean each of them.
const COMMON: [&str; 9] = ["ALL", "HIGH", "DEFAULT", "ECDHE", "EECDH", "kECDHE", "kEECDH", "ECDH", "TLSv1.2"];

/// In OpenSSL's own order, which is that of `ALL`.
const SUITES: [Suite; 6] = [
    suite(
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        &["ECDSA", "aECDSA", "AES", "AES256", "AESGCM"],
        256,
    ),
    suite(
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        &["aRSA", "AES", "AES256", "AESGCM"],
        256,
    ),
    suite(
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        &["ECDSA", "aECDSA", "CHACHA20"],
        256,
    ),
    suite(
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
        &["aRSA", "CHACHA20"],
        256,
    ),
    suite(
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        &["ECDSA", "aECDSA", "AES", "AES128", "AESGCM"],
        128,
    ),
    suite(
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        &["aRSA", "AES", "AES128", "AESGCM"],
        128,
    ),
];

const fn suite(iana: &'static str, name: &'static str, words: &'static [&'static str], bits: u32) -> Suite {
    Suite { iana, name, words, bits }
}

impl Suite {
    /// Whether it is meant by words that are joined with `+`.
    fn is_meant_by(&self, words: &str) -> bool {
        let is_meant = |word: &str| {
            word == self.name || word == self.iana || COMMON.contains(&word) || self.words.contains(&word)
        };
        words.split('+').all(is_meant)
    }
}

/// The TLS 1.2 suites of a cipher string that courser has, in its order.
pub(crate) fn tls12(string: &str) -> Vec<&'static str> {
    let mut chosen: Vec<&Suite> = Vec::new();
    let mut killed: Vec<&str> = Vec::new();
    for item in string.split([':', ',', ' ', ';']).filter(|item| !item.is_empty()) {
        let (operator, words) = match item.split_at_checked(1) {
            Some((operator @ ("!" | "-" | "+"), words)) => (operator, words),
            _ => ("", item),
        };
        let meant: Vec<&Suite> = SUITES.iter().filter(|suite| suite.is_meant_by(words)).collect();
        let is_meant = |suite: &&Suite| meant.iter().any(|one| one.iana == suite.iana);
        match operator {
            "!" => {
                chosen.retain(|suite| !is_meant(suite));
                killed.extend(meant.iter().map(|suite| suite.iana));
            }
            "-" => chosen.retain(|suite| !is_meant(suite)),
            // Moves to the end what is there already.
            "+" => {
                let moved: Vec<&Suite> = chosen.iter().copied().filter(|suite| is_meant(suite)).collect();
                chosen.retain(|suite| !is_meant(suite));
                chosen.extend(moved);
            }
            _ if words == "@STRENGTH" => chosen.sort_by_key(|suite| std::cmp::Reverse(suite.bits)),
            _ => {
                let is_new = |suite: &&&Suite| {
                    !killed.contains(&suite.iana) && chosen.iter().all(|known| known.iana != suite.iana)
                };
                let new: Vec<&Suite> = meant.iter().filter(is_new).copied().collect();
                chosen.extend(new);
            }
        }
    }
    chosen.into_iter().map(|suite| suite.iana).collect()
}

/// The TLS 1.3 suites that courser has, in its own order.
pub(crate) const TLS13: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// The TLS 1.3 suites of a list that courser has, in the list's order.
pub(crate) fn tls13(list: &str) -> Vec<&'static str> {
    let known = |name: &str| TLS13.into_iter().find(|suite| *suite == name);
    list.split([':', ',', ' ']).filter_map(known).collect()
}

/// The groups of a list that courser has, in the list's order, and the names of the others.
pub(crate) fn groups(list: &str) -> (Vec<&'static str>, Vec<&str>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for name in list.split([':', ',', ' ']).filter(|name| !name.is_empty()) {
        match name.to_ascii_lowercase().as_str() {
            "x25519mlkem768" => known.push("X25519MLKEM768"),
            "x25519" => known.push("X25519"),
            "p-256" | "prime256v1" | "secp256r1" => known.push("P-256"),
            "p-384" | "secp384r1" => known.push("P-384"),
            _ => unknown.push(name),
        }
    }
    (known, unknown)
}
