//! Reading a header: nothing is copied, and what is read has been checked to its end.

use std::net::{IpAddr, SocketAddr};

use super::field::{field, next_field, once, text};
use super::header::{
    ALPN, AUTHORITY, CRC32C, Command, HEADER, NOOP, ProxyHeader, SIGNATURE, UNIQUE_ID, UNIX_PATH,
};
use super::ssl::{SSL, Ssl};
use crate::bytes::Reader;
use crate::proxy::{Addresses, Malformed, crc32c};

/// Reads the header at the front of `received`: its content and how many bytes it has, at most
/// [`MAX_LENGTH`](super::MAX_LENGTH). `None` until it is whole. Fields of unknown types are skipped; a known one that
/// comes twice is an error, so that no two readers can take it differently.
///
/// # Errors
/// [`Malformed`]; faults in the first 14 bytes as soon as they are there, all others when the header is whole.
pub fn parse(received: &[u8]) -> Result<Option<(ProxyHeader<'_>, usize)>, Malformed> {
    if !received.starts_with(&SIGNATURE[..received.len().min(SIGNATURE.len())]) {
        return Err(Malformed::Signature);
    }
    let command = received.get(12).map(|&byte| read_command(byte)).transpose()?;
    let family = received.get(13).map(|&byte| read_family(byte)).transpose()?;
    let length = received.get(14..HEADER).and_then(|bytes| Reader::new(bytes).u16());
    let (Some(command), Some(family), Some(length)) = (command, family, length) else {
        return Ok(None);
    };
    let Some(whole) = received.get(..HEADER + usize::from(length)) else { return Ok(None) };
    let mut header = ProxyHeader { command, ..ProxyHeader::default() };
    if command == Command::Proxy {
        header.read(whole, family)?;
    }
    Ok(Some((header, whole.len())))
}

/// The fields of a whole header that [`parse`] has read, as they came, for [`write_with`](super::write_with). Those that are
/// about the header itself are left out: its checksum and its padding (sections 2.2.3 and 2.2.4). Empty for LOCAL.
pub fn fields(header: &[u8]) -> Vec<u8> {
    let family = header.get(13).map(|&byte| read_family(byte));
    let (Some(Ok((family, _))), Some(&[0x21, ..])) = (family, header.get(12..)) else { return Vec::new() };
    let mut reader = Reader::new(header.get(HEADER..).unwrap_or_default());
    let mut fields = Vec::new();
    if read_addresses(&mut reader, family).is_some() {
        while let Ok(Some((kind, value))) = next_field(&mut reader) {
            if !matches!(kind, CRC32C | NOOP) {
                field(kind, Some(value), &mut fields);
            }
        }
    }
    fields
}

/// The form of the addresses (section 2.2).
#[derive(Clone, Copy)]
enum Family {
    Unspecified,
    Inet,
    Inet6,
    Unix,
}

fn read_command(byte: u8) -> Result<Command, Malformed> {
    match (byte >> 4, byte & 0x0f) {
        (2, 0) => Ok(Command::Local),
        (2, 1) => Ok(Command::Proxy),
        (2, command) => Err(Malformed::Command(command)),
        (version, _) => Err(Malformed::Version(version)),
    }
}

/// The family, and whether a transport is named: without one the addresses mean nothing.
fn read_family(byte: u8) -> Result<(Family, bool), Malformed> {
    let family = match byte >> 4 {
        0 => Family::Unspecified,
        1 => Family::Inet,
        2 => Family::Inet6,
        3 => Family::Unix,
        _ => return Err(Malformed::Family(byte)),
    };
    if byte & 0x0f > 2 { Err(Malformed::Family(byte)) } else { Ok((family, byte & 0x0f != 0)) }
}

impl<'a> ProxyHeader<'a> {
    fn read(&mut self, whole: &'a [u8], (family, has_transport): (Family, bool)) -> Result<(), Malformed> {
        let mut reader = Reader::new(&whole[HEADER..]);
        let addresses = read_addresses(&mut reader, family).ok_or(Malformed::ShortAddresses)?;
        if has_transport {
            self.addresses = addresses;
        }
        while let Some((kind, value)) = next_field(&mut reader)? {
            if kind == CRC32C {
                self.verify(value, whole, whole.len() - reader.rest().len())?;
            }
            self.read_field(kind, value)?;
        }
        Ok(())
    }

    /// Holds the checksum in `value`, which ends at `end`, against that of the header with zeros in its place.
    fn verify(&mut self, value: &[u8], whole: &[u8], end: usize) -> Result<(), Malformed> {
        if self.crc32c {
            return Err(Malformed::Repeated(CRC32C));
        }
        let sum: [u8; 4] = value.try_into().map_err(|_| Malformed::ShortField(CRC32C))?;
        let zeroed = crc32c::checksum(&[&whole[..end - sum.len()], &[0; 4], &whole[end..]]);
        self.crc32c = true;
        if sum == zeroed.to_be_bytes() { Ok(()) } else { Err(Malformed::Checksum) }
    }

    /// Takes a field. The checksum was dealt with; padding and types that are not for us are
    /// passed over, however often they come.
    fn read_field(&mut self, kind: u8, value: &'a [u8]) -> Result<(), Malformed> {
        match kind {
            ALPN => once(kind, &mut self.alpn, value),
            AUTHORITY => once(kind, &mut self.authority, text(kind, value)?),
            UNIQUE_ID => once(kind, &mut self.unique_id, value),
            SSL => once(kind, &mut self.ssl, Ssl::parse(value)?),
            _ => Ok(()),
        }
    }
}

fn read_addresses<'a>(reader: &mut Reader<'a>, family: Family) -> Option<Addresses<'a>> {
    match family {
        Family::Unspecified => Some(Addresses::Unspecified),
        Family::Inet => read_ip::<4>(reader),
        Family::Inet6 => read_ip::<16>(reader),
        Family::Unix => {
            let (source, destination) = (reader.take(UNIX_PATH)?, reader.take(UNIX_PATH)?);
            Some(Addresses::Unix { source: trim(source), destination: trim(destination) })
        }
    }
}

fn read_ip<'a, const N: usize>(reader: &mut Reader<'_>) -> Option<Addresses<'a>>
where
    IpAddr: From<[u8; N]>,
{
    let (source, destination) = (*reader.array::<N>()?, *reader.array::<N>()?);
    let source = SocketAddr::new(source.into(), reader.u16()?);
    let destination = SocketAddr::new(destination.into(), reader.u16()?);
    Some(Addresses::Ip { source, destination })
}

fn trim(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}
