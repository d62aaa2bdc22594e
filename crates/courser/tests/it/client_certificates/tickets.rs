//! Tickets have their client's certificate in them, and wait for the first answer: several come to more than a connection
//! may hold back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, Connection, Resume, Version};
use courser_testkit::{Leaf, PATIENCE};

use super::Club;
use crate::stage::{backend, courser};

/// Held back until the answer, they would keep the rest of the request from being read, and so the answer from coming.
#[test]
fn tickets_that_wait_for_an_answer_do_not_keep_its_request_from_being_read() {
    const TICKETS: u32 = 16;
    let (club, (half, has_half)) = (Club::new(), channel());
    let (address, _) = backend(move |mut socket| {
        let mut request = [0; 8];
        socket.read_exact(&mut request[..4]).unwrap();
        half.send(()).unwrap();
        socket.read_exact(&mut request[4..]).unwrap();
        socket.write_all(b"answer").unwrap();
        socket.read_to_end(&mut Vec::new())
    });
    let authority = club.site.folder.write("clients.pem", club.clients.root_pem());
    let setup =
        courser().cert(club.site.cert(EcdsaP256)).backend(address).args(["--client-auth", "required"]);
    let setup = setup.args(["--tickets-per-handshake", &TICKETS.to_string(), "--client-ca"]).arg(authority);
    let courser = setup.start();
    let names = (0..45).map(|number| format!("{number:03}.{}.example", "x".repeat(45)));
    // Each ticket has some 3 KiB.
    let large = club.clients.issue(&Leaf::new(EcdsaP256).of_client("large").names(names));
    let client =
        Client::new(courser.address(), Version::Tls13, EcdsaP256, Resume::Never).with_certificate(&large);
    // The first half comes with the Finished, so that the tickets wait for its answer.
    let mut tls = client.session();
    tls.writer().write_all(b"half").unwrap();
    let socket = TcpStream::connect(courser.address()).unwrap();
    let mut connection = Connection::complete(tls, socket).expect("it is let in");
    has_half.recv_timeout(PATIENCE).expect("the first half arrives");
    connection.stream().write_all(b"rest").unwrap();
    let mut answer = [0; 6];
    connection.stream().read_exact(&mut answer).expect("the answer comes");
    assert_eq!((&answer, connection.tickets()), (b"answer", TICKETS));
}
