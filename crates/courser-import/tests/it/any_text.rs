//! Any text, and texts of the right words in any order: nothing panics, and what comes out is TOML.

use courser_import::{Import, Malformed};
use proptest::prelude::*;

use crate::memory::Memory;

/// Words and signs of the three languages.
const WORDS: &str = "frontend backend pem-file pem-dir = { } \" [*]:443 [::1]:80 /run/s on off tls-protos TLSv1.2 TLSv1.3 \
    ciphers ciphersuites ECDHE+AESGCM:!aRSA:+AES: - + ! @STRENGTH workers 3 host port cert private-key # ; [s] [ ] accept connect \
    key CAfile verify verifyChain yes no sni s:*.example : options NO_TLSv1.3 failover prio include TIMEOUTidle 0 global defaults \
    listen bind ssl crt mode tcp http server a 10.0.0.1:80 weight maxconn 7 backup send-proxy default_backend use_backend if \
    ssl_fc_sni -i acl timeout client 5s 10us 99999999999999999999d crt-base ca-file required alpn h2, curves \\ ' é";

fn words() -> impl Strategy<Value = String> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let gap = prop_oneof![4 => Just(" "), 2 => Just("\n"), 1 => Just("")];
    let piece = (prop::sample::select(words), gap).prop_map(|(word, gap)| format!("{word}{gap}"));
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn holds(text: &str) {
    let files = Memory::of([("/run/s", "-----BEGIN PRIVATE KEY-----"), ("a", text)]);
    let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let imports: [Result<Import, Malformed>; 4] = [
        courser_import::hitch(text, &files),
        courser_import::stunnel(text, &files),
        courser_import::haproxy(text, &files),
        courser_import::stud(&arguments, &files),
    ];
    for import in imports {
        match import {
            Ok(import) => {
                let table = toml::de::DeTable::parse(&import.toml);
                assert!(table.is_ok(), "{table:?}: {}", import.toml);
            }
            Err(Malformed { line, .. }) => {
                assert!(line <= text.lines().count().max(1), "line {line} of {text:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_imported_or_refused(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn the_right_words_in_any_order_are_imported_or_refused(text in words()) {
        holds(&text);
    }
}
