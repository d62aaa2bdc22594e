//! A ClientHello that is changed: its record and message headers are made anew for whatever its body has become.

use courser_testkit::client::hostile::{HANDSHAKE, HEADER, plain_record};

/// Offset of the body: record header, message header.
const BODY: usize = HEADER + 4;
/// Version and random bytes.
const SESSION_ID: usize = 34;

/// Types of extensions.
pub(super) const SERVER_NAME: u16 = 0;
pub(super) const SUPPORTED_GROUPS: u16 = 10;
pub(super) const SIGNATURE_ALGORITHMS: u16 = 13;
pub(super) const ALPN: u16 = 16;
pub(super) const SUPPORTED_VERSIONS: u16 = 43;
pub(super) const KEY_SHARE: u16 = 51;

/// A ClientHello's parts.
pub(super) struct Hello {
    /// Legacy version, random bytes, session ID.
    pub(super) head: Vec<u8>,
    pub(super) suites: Vec<u8>,
    pub(super) compressions: Vec<u8>,
    pub(super) extensions: Vec<(u16, Vec<u8>)>,
}

impl Hello {
    /// Takes one record apart.
    pub(super) fn read(record: &[u8]) -> Self {
        let body = &record[BODY..];
        let (head, rest) = body.split_at(SESSION_ID + 1 + usize::from(body[SESSION_ID]));
        let (suites, rest) = prefixed(rest, 2);
        let (compressions, rest) = prefixed(rest, 1);
        let (mut list, _) = prefixed(rest, 2);
        let mut extensions = Vec::new();
        while !list.is_empty() {
            let kind = u16::from_be_bytes([list[0], list[1]]);
            let (content, rest) = prefixed(&list[2..], 2);
            extensions.push((kind, content.to_vec()));
            list = rest;
        }
        Self { head: head.to_vec(), suites: suites.to_vec(), compressions: compressions.to_vec(), extensions }
    }

    /// The same without this extension.
    pub(super) fn without(mut self, kind: u16) -> Self {
        self.extensions.retain(|extension| extension.0 != kind);
        self
    }

    /// The same with this content of an extension, in its place or at the end.
    pub(super) fn with(mut self, kind: u16, content: &[u8]) -> Self {
        match self.extensions.iter_mut().find(|extension| extension.0 == kind) {
            Some(extension) => extension.1 = content.to_vec(),
            None => self.extensions.push((kind, content.to_vec())),
        }
        self
    }

    /// One record with it.
    pub(super) fn record(&self) -> Vec<u8> {
        let each = |(kind, content): &(u16, Vec<u8>)| [&kind.to_be_bytes()[..], &vector(2, content)].concat();
        let extensions: Vec<u8> = self.extensions.iter().flat_map(each).collect();
        let body = [
            &self.head[..],
            &vector(2, &self.suites),
            &vector(1, &self.compressions),
            &vector(2, &extensions),
        ];
        plain_record(HANDSHAKE, &[&[1][..], &vector(3, &body.concat())].concat())
    }
}

/// A vector with its length in so many bytes, and what is behind it.
fn prefixed(bytes: &[u8], width: usize) -> (&[u8], &[u8]) {
    let (length, rest) = bytes.split_at(width);
    rest.split_at(length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)))
}

fn vector(width: usize, content: &[u8]) -> Vec<u8> {
    [&content.len().to_be_bytes()[size_of::<usize>() - width..], content].concat()
}
