//! The reader of a server's flight against what servers have sent, and against what they have not.

pub(crate) mod exercise;

use std::fs;
use std::path::{Path, PathBuf};

use courser_tls_client::flight::{FlightReader, ServerFlight};

#[test]
fn the_flights_of_openssl_are_read() {
    let old = flight_of("tls10-dhe");
    let exchange = old.key_exchange.clone().expect("DHE has one");
    assert_eq!((old.version(), old.certificates.len(), old.tickets), (Some(0x0301), 1, 1));
    assert_eq!((exchange.prime_bits, exchange.group, exchange.scheme), (Some(2048), None, None));

    let usual = flight_of("tls12-ecdhe-whole");
    let hello = usual.hello.clone().expect("it is whole");
    assert_eq!((hello.version, hello.suite, hello.ticket), (0x0303, 0xc02f, true));
    assert_eq!((usual.group(), usual.tickets, usual.done), (Some(0x001d), 1, true));
    assert_eq!(usual.key_exchange.and_then(|exchange| exchange.scheme), Some(0x0804));

    let plain = flight_of("tls12-rsa");
    assert_eq!(
        (plain.hello.map(|hello| hello.suite), plain.key_exchange, plain.done),
        (Some(0x002f), None, true)
    );

    let new = flight_of("tls13");
    assert_eq!((new.version(), new.group(), new.certificates.len()), (Some(0x0304), Some(0x001d), 0));

    let retry = flight_of("tls13-retry").retry.expect("another share is requested");
    assert_eq!((retry.version, retry.group), (0x0304, Some(0x0018)));
    assert_eq!(flight_of("refused").alert, Some(70));
    assert!(flight_of("http").not_tls);
}

#[test]
fn the_corpus_of_the_fuzz_target_breaks_nothing() {
    let files: Vec<_> = fs::read_dir(corpus()).expect("the corpus is committed").collect();
    assert!(files.len() > 5, "the corpus is there");
    for file in files {
        exercise::flight(&fs::read(file.expect("a file").path()).expect("readable"));
    }
}

fn flight_of(name: &str) -> ServerFlight {
    let mut flight = FlightReader::default();
    flight.read(&fs::read(corpus().join(name).with_extension("bin")).expect("it is committed"));
    flight.flight().clone()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/flight")
}
