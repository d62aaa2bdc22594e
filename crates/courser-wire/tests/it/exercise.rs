//! What has to hold for any bytes at all, one function for each thing that is parsed. The fuzz targets, the
//! committed corpora and the property tests run the same.

use courser_wire::hello::ClientHello;
use courser_wire::proxy::{v1, v2};
use courser_wire::record::{Assembler, Assembly, assemble};
use courser_wire::server_hello::{self, ServerSession, session_id};

/// The most a connection may send before its ClientHello is whole.
pub(crate) const LIMIT: usize = 1 << 14;

/// The answer does not depend on how the bytes arrive, a hello is the same hello in records of one byte, and
/// what was accepted can be walked to its end.
pub(crate) fn client_hello(received: &[u8]) {
    let at_once = assemble(received, LIMIT);
    let mut assembler = Assembler::new(LIMIT);
    let decided = (0..=received.len())
        .map(|end| assembler.assemble(&received[..end]))
        .find(|answer| *answer != Ok(Assembly::Incomplete));
    assert_eq!(decided.unwrap_or(Ok(Assembly::Incomplete)), at_once);

    let Ok(Assembly::Complete(body)) = at_once else { return };
    let again = split(&body, &[1]);
    assert_eq!(assemble(&again, again.len()), Ok(Assembly::Complete(body.to_vec().into())));
    if let Ok(hello) = ClientHello::parse(&body) {
        walk(&hello);
    }
}

/// The answer does not depend on how the bytes arrive, comes within the bound, and is a part of what was sent.
pub(crate) fn server_hello(sent: &[u8]) {
    let at_once = session_id(sent);
    let decided =
        (0..=sent.len()).map(|end| session_id(&sent[..end])).find(|one| *one != ServerSession::Incomplete);
    assert_eq!(decided.unwrap_or(ServerSession::Incomplete), at_once);
    match at_once {
        ServerSession::Incomplete => assert!(sent.len() < server_hello::MAX_LENGTH),
        ServerSession::Id(id) => {
            assert!((1..=32).contains(&id.len()) && sent.windows(id.len()).any(|part| part == id));
        }
        ServerSession::None => {}
    }
}

/// A line that is read ends where it says, is not decided earlier, and says the same when it is written.
pub(crate) fn proxy_v1(received: &[u8]) {
    let Ok(Some((addresses, consumed))) = v1::parse(received) else { return };
    assert!(consumed <= v1::MAX_LENGTH && received[..consumed].ends_with(b"\r\n"));
    for end in 0..consumed {
        assert_eq!(v1::parse(&received[..end]), Ok(None));
    }
    let mut line = Vec::new();
    v1::write(&addresses, &mut line);
    let (read, length) = v1::parse(&line).expect("our own line").expect("a whole line");
    let mut again = Vec::new();
    v1::write(&read, &mut again);
    assert_eq!((&again, length), (&line, line.len()));
}

/// A header that is read ends where it says, is not decided earlier, and says the same when it is written.
pub(crate) fn proxy_v2(received: &[u8]) {
    let Ok(Some((parsed, consumed))) = v2::parse(received) else { return };
    assert!(consumed <= v2::MAX_LENGTH);
    for end in 0..consumed {
        assert_eq!(v2::parse(&received[..end]), Ok(None));
    }
    let mut bytes = Vec::new();
    if v2::write(&parsed, &mut bytes).is_err() {
        return;
    }
    let (read, length) = v2::parse(&bytes).expect("our own header").expect("a whole header");
    let mut again = Vec::new();
    v2::write(&read, &mut again).expect("it was written before");
    assert_eq!((&again, length), (&bytes, bytes.len()));
    assert_eq!(read.ssl, parsed.ssl);
    pass_on(&received[..consumed], &parsed);
}

/// What is passed on comes out again as it went in, whatever is written in front of it.
fn pass_on(received: &[u8], parsed: &v2::ProxyHeader<'_>) {
    let fields = v2::fields(received);
    let (bare, mut bytes) =
        (v2::ProxyHeader { addresses: parsed.addresses, ..v2::ProxyHeader::default() }, Vec::new());
    if v2::write_with(&bare, &fields, &mut bytes).is_ok() {
        assert_eq!(v2::fields(&bytes), fields);
        let (again, _) = v2::parse(&bytes).expect("they were read before").expect("a whole header");
        assert_eq!((again.alpn, again.authority, again.ssl), (parsed.alpn, parsed.authority, parsed.ssl));
    }
    bytes.clear();
    if v2::write_with(parsed, &fields, &mut bytes).is_ok() {
        v2::parse(&bytes).expect("no type comes twice").expect("a whole header");
    }
}

/// A ClientHello of this body, cut into records whose sizes go round in `sizes`.
pub(crate) fn split(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a hello has three bytes of length").to_be_bytes();
    let message = [&[1], &length[1..], body].concat();
    let (mut rest, mut bytes) = (&message[..], Vec::new());
    for &size in sizes.iter().cycle() {
        let (fragment, tail) = rest.split_at(size.clamp(1, 1 << 14).min(rest.len()));
        bytes.extend_from_slice(&[22, 3, 1]);
        bytes.extend_from_slice(&u16::try_from(fragment.len()).expect("clamped").to_be_bytes());
        bytes.extend_from_slice(fragment);
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    bytes
}

fn walk(hello: &ClientHello<'_>) {
    assert_eq!(hello.cipher_suites.iter().count(), hello.cipher_suites.len());
    assert!(hello.groups.without_grease().count() <= hello.groups.len());
    assert!(hello.alpn.iter().all(|name| !name.is_empty()));
    assert!(hello.key_shares.iter().all(|(_, share)| !share.is_empty()));
    assert_eq!(hello.psk_identities.is_empty(), hello.psk_identities.iter().next().is_none());
    assert!(hello.server_name.is_none_or(|name| !name.is_empty() && !name.ends_with('.')));
}
