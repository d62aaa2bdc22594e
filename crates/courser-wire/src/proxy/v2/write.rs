//! Writing a header in one go, its lengths and its checksum filled in at the end.

use std::fmt;

use super::field::{field, field_with, next_field};
use super::header::{
    ALPN, AUTHORITY, CRC32C, Command, FIELD_HEADER, HEADER, MAX_UNIQUE_ID, ProxyHeader, SIGNATURE, UNIQUE_ID,
    UNIX_PATH,
};
use super::ssl::SSL;
use crate::bytes::Reader;
use crate::proxy::{Addresses, Pair, crc32c};

/// Appends the header to `out`. Fields that are `None` are left out, empty ones are written.
///
/// # Errors
/// [`Unwritable`], and `out` is as it was. Only a value of absurd length gets there; of those a client can
/// choose, the certificate alone can be so long, and leaving it out makes room.
pub fn write(header: &ProxyHeader<'_>, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    write_with(header, &[], out)
}

/// As [`write()`], with `passed_on` behind the header's own fields: what [`fields`](super::fields) has taken from another
/// header, but for types that the header has itself, since readers differ in which of two they believe.
///
/// # Errors
/// As [`write()`].
pub fn write_with(header: &ProxyHeader<'_>, passed_on: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    check(header, passed_on)?;
    let start = out.len();
    let proxy = header.command == Command::Proxy;
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0x20 | u8::from(proxy), 0, 0, 0]);
    if proxy {
        out[start + 13] = write_addresses(&header.addresses, out);
        write_fields(header, passed_on, out);
    }
    let length = u16::try_from(out.len() - start - HEADER).expect("it was measured before it was written");
    out[start + 14..start + HEADER].copy_from_slice(&length.to_be_bytes());
    if proxy && header.crc32c {
        fill_in_checksum(&mut out[start..]);
    }
    Ok(())
}

/// Why a header cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unwritable {
    /// A field, or all of them together, beyond what the header's length can count.
    TooLong,
    /// A unique ID of more than 128 bytes (section 2.2.5).
    UniqueIdTooLong,
    /// A unix path of more than 108 bytes (section 2.2).
    PathTooLong,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "more than a PROXY header can hold",
            Self::UniqueIdTooLong => "a unique id of more than 128 bytes",
            Self::PathTooLong => "a unix path of more than 108 bytes",
        })
    }
}

impl std::error::Error for Unwritable {}

/// Appends the addresses and returns the byte for their family and transport.
fn write_addresses(addresses: &Addresses<'_>, out: &mut Vec<u8>) -> u8 {
    match *addresses {
        Addresses::Unspecified => 0x00,
        Addresses::Ip { source, destination } => write_pair(&Pair::of(source, destination), out),
        Addresses::Unix { source, destination } => {
            for path in [source, destination] {
                out.extend_from_slice(path);
                out.resize(out.len() + UNIX_PATH - path.len(), 0);
            }
            0x31
        }
    }
}

fn write_pair(pair: &Pair, out: &mut Vec<u8>) -> u8 {
    let (family, ports) = match pair {
        Pair::V4(from, to) => {
            out.extend_from_slice(&from.ip().octets());
            out.extend_from_slice(&to.ip().octets());
            (0x11, [from.port(), to.port()])
        }
        Pair::V6(from, to) => {
            out.extend_from_slice(&from.ip().octets());
            out.extend_from_slice(&to.ip().octets());
            (0x21, [from.port(), to.port()])
        }
    };
    out.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    family
}

fn write_fields(header: &ProxyHeader<'_>, passed_on: &[u8], out: &mut Vec<u8>) {
    field(ALPN, header.alpn, out);
    field(AUTHORITY, header.authority.map(str::as_bytes), out);
    field(UNIQUE_ID, header.unique_id, out);
    if let Some(ssl) = &header.ssl {
        field_with(SSL, out, |out| ssl.write(out));
    }
    let mut others = Reader::new(passed_on);
    while let Ok(Some((kind, value))) = next_field(&mut others) {
        let is_own = match kind {
            ALPN => header.alpn.is_some(),
            AUTHORITY => header.authority.is_some(),
            UNIQUE_ID => header.unique_id.is_some(),
            SSL => header.ssl.is_some(),
            CRC32C => true,
            _ => false,
        };
        field(kind, Some(value).filter(|_| !is_own), out);
    }
    if header.crc32c {
        field(CRC32C, Some(&[0; 4]), out);
    }
}

/// Over a whole header, whose last field it is (section 2.2.3).
fn fill_in_checksum(header: &mut [u8]) {
    let sum = crc32c::checksum(&[header]);
    if let Some(slot) = header.last_chunk_mut() {
        *slot = sum.to_be_bytes();
    }
}

fn check(header: &ProxyHeader<'_>, passed_on: &[u8]) -> Result<(), Unwritable> {
    if let Addresses::Unix { source, destination } = header.addresses
        && source.len().max(destination.len()) > UNIX_PATH
    {
        return Err(Unwritable::PathTooLong);
    }
    if header.unique_id.is_some_and(|id| id.len() > MAX_UNIQUE_ID) {
        return Err(Unwritable::UniqueIdTooLong);
    }
    // Each field counted as if it were there: a few hundred bytes too many, and one sum to read.
    if MAX_FIXED.saturating_add(variable_length(header)).saturating_add(passed_on.len())
        > usize::from(u16::MAX)
    {
        return Err(Unwritable::TooLong);
    }
    Ok(())
}

/// The largest addresses, every field's header, the fixed part of the TLS field and the checksum.
const MAX_FIXED: usize = 2 * UNIX_PATH + 13 * FIELD_HEADER + 5 + 4;

fn variable_length(header: &ProxyHeader<'_>) -> usize {
    let ssl = header.ssl.unwrap_or_default();
    let texts = [
        header.authority,
        ssl.version,
        ssl.common_name,
        ssl.cipher,
        ssl.signature_algorithm,
        ssl.key_algorithm,
        ssl.group,
        ssl.signature_scheme,
    ];
    let bytes = [header.alpn, header.unique_id, ssl.client_certificate];
    let texts = texts.into_iter().flatten().map(str::len);
    texts.chain(bytes.into_iter().flatten().map(<[u8]>::len)).fold(0, usize::saturating_add)
}
