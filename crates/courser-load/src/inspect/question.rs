//! A ClientHello that offers exactly what is asked about (RFC 8446, section 4.1.2; RFC 5246, section 7.4.1.2).

use courser_tls_client::ServerName;

/// What is offered.
#[derive(Clone, Debug)]
pub(super) struct Question<'a> {
    /// The only version, code point.
    pub(super) version: u16,
    pub(super) suites: &'a [u16],
    pub(super) groups: &'a [u16],
    /// Groups with a key share, in TLS 1.3: of those in [`SHARES`]. With none the server has to ask for one, and so
    /// tells which group it wants.
    pub(super) shares: &'a [u16],
    pub(super) schemes: &'a [u16],
}

/// Groups that a key share can be sent for without any secret: the base point is a valid one.
pub(super) const SHARES: [u16; 2] = [X25519, P256];

impl Question<'_> {
    /// The ClientHello as one record. It is always the same for the same question: nobody shall keep a secret with it.
    pub(super) fn hello(&self, name: &ServerName) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(self.version.min(TLS12).to_be_bytes());
        body.extend(RANDOM);
        // TLS 1.3 behind middleboxes looks like a resumption (RFC 8446, appendix D.4).
        vector8(&mut body, if self.version >= TLS13 { &RANDOM } else { &[] });
        vector16(&mut body, &codes(self.suites));
        vector8(&mut body, &[NO_COMPRESSION]);
        let mut extensions = self.extensions(name);
        pad(&mut extensions, HEADERS + body.len());
        vector16(&mut body, &extensions);
        let mut message = vec![CLIENT_HELLO, 0];
        vector16(&mut message, &body);
        let mut record = vec![HANDSHAKE, 3, 1];
        vector16(&mut record, &message);
        record
    }

    fn extensions(&self, name: &ServerName) -> Vec<u8> {
        let mut all = Vec::new();
        if let Some(name) = name.dns() {
            let mut entry = vec![0];
            vector16(&mut entry, name.as_bytes());
            extension(&mut all, SERVER_NAME, &in_vector16(&entry));
        }
        if !self.groups.is_empty() {
            extension(&mut all, SUPPORTED_GROUPS, &in_vector16(&codes(self.groups)));
        }
        extension(&mut all, EC_POINT_FORMATS, &[1, 0]);
        if self.version >= TLS12 {
            extension(&mut all, SIGNATURE_ALGORITHMS, &in_vector16(&codes(self.schemes)));
        }
        if self.version >= TLS13 {
            extension(&mut all, SUPPORTED_VERSIONS, &[2, 3, 4]);
            extension(&mut all, KEY_SHARE, &in_vector16(&self.key_shares()));
            extension(&mut all, PSK_KEY_EXCHANGE_MODES, &[1, 1]);
        } else {
            extension(&mut all, EXTENDED_MASTER_SECRET, &[]);
            extension(&mut all, RENEGOTIATION_INFO, &[0]);
        }
        all
    }

    fn key_shares(&self) -> Vec<u8> {
        let mut shares = Vec::new();
        for &group in self.shares {
            shares.extend(group.to_be_bytes());
            vector16(&mut shares, if group == P256 { &P256_BASE } else { &X25519_BASE });
        }
        shares
    }
}

/// Some old machines hang on a ClientHello of 256 to 511 bytes (RFC 7685, section 1).
fn pad(extensions: &mut Vec<u8>, before: usize) {
    let length = before + extensions.len();
    if (256..512).contains(&length) {
        extension(extensions, PADDING, &vec![0; (512 - length).saturating_sub(4)]);
    }
}

fn extension(all: &mut Vec<u8>, kind: u16, content: &[u8]) {
    all.extend(kind.to_be_bytes());
    vector16(all, content);
}

fn in_vector16(content: &[u8]) -> Vec<u8> {
    let mut vector = Vec::new();
    vector16(&mut vector, content);
    vector
}

fn vector16(to: &mut Vec<u8>, content: &[u8]) {
    let length = u16::try_from(content.len()).expect("a few hundred code points and a name of 253 letters");
    to.extend(length.to_be_bytes());
    to.extend(content);
}

fn vector8(to: &mut Vec<u8>, content: &[u8]) {
    to.push(u8::try_from(content.len()).expect("a session ID or a list of one"));
    to.extend(content);
}

fn codes(codes: &[u16]) -> Vec<u8> {
    codes.iter().flat_map(|code| code.to_be_bytes()).collect()
}

const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;
const X25519: u16 = 0x001d;
const P256: u16 = 0x0017;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const NO_COMPRESSION: u8 = 0;

/// Header of the message, and length of the extensions: what counts beside them for [`pad`].
const HEADERS: usize = 4 + 2;

/// "DOWNGRD" and other meanings of this field are the server's (RFC 8446, section 4.1.3); a client's means nothing.
const RANDOM: [u8; 32] = *b"courser-bench asks, and hangs up";

/// Extensions, by IANA's registry.
const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const EC_POINT_FORMATS: u16 = 11;
const SIGNATURE_ALGORITHMS: u16 = 13;
const PADDING: u16 = 21;
const EXTENDED_MASTER_SECRET: u16 = 23;
const SUPPORTED_VERSIONS: u16 = 43;
const PSK_KEY_EXCHANGE_MODES: u16 = 45;
const KEY_SHARE: u16 = 51;
const RENEGOTIATION_INFO: u16 = 0xff01;

/// The base point of Curve25519 (RFC 7748, section 4.1).
const X25519_BASE: [u8; 32] = {
    let mut base = [0; 32];
    base[0] = 9;
    base
};

/// The base point of P-256, uncompressed (FIPS 186-4, appendix D.1.2.3).
const P256_BASE: [u8; 65] = [
    0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96, 0x4f,
    0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce,
    0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5,
];

#[cfg(test)]
mod tests {
    use super::*;
    use courser_wire::hello::ClientHello;
    use courser_wire::record::{Assembly, assemble};

    #[test]
    fn a_question_is_read_as_it_was_asked() {
        let (suites, groups, schemes) = ([0x1301, 0x1303], [0x001d, 0x0017], [0x0403, 0x0804]);
        let question = Question {
            version: 0x0304,
            suites: &suites,
            groups: &groups,
            shares: &[0x0017],
            schemes: &schemes,
        };
        let record = question.hello(&ServerName::parse("a.test").unwrap());
        let Ok(Assembly::Complete(body)) = assemble(&record, 4096) else { panic!("it is whole") };
        let hello = ClientHello::parse(&body).unwrap();
        assert!(hello.offers_tls13());
        assert_eq!(hello.server_name, Some("a.test"));
        assert_eq!(hello.cipher_suites.iter().collect::<Vec<_>>(), suites);
        assert_eq!(hello.groups.iter().collect::<Vec<_>>(), groups);
        assert_eq!(hello.signature_schemes.unwrap().iter().collect::<Vec<_>>(), schemes);
        assert_eq!(hello.key_shares.iter().count(), 1);
    }

    #[test]
    fn no_hello_has_a_length_that_old_machines_hang_on() {
        let suites: Vec<u16> = (0..250).collect();
        for count in 1..suites.len() {
            let suites = &suites[..count];
            let question =
                Question { version: 0x0303, suites, groups: &[23], shares: &[], schemes: &[0x0401] };
            let length = question.hello(&ServerName::parse("a.test").unwrap()).len() - 5;
            assert!(!(256..512).contains(&length), "{count} suites make {length} bytes");
        }
    }

    #[test]
    fn an_old_version_stands_where_it_stood_of_old() {
        let question =
            Question { version: 0x0301, suites: &[0x002f], groups: &[], shares: &[], schemes: &[] };
        let record = question.hello(&ServerName::parse("127.0.0.1").unwrap());
        let Ok(Assembly::Complete(body)) = assemble(&record, 4096) else { panic!("it is whole") };
        let hello = ClientHello::parse(&body).unwrap();
        assert_eq!((hello.legacy_version, hello.offers_tls13(), hello.server_name), (0x0301, false, None));
    }
}
