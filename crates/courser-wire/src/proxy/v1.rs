//! Version 1: one line of text with the addresses and nothing else (section 2.1).

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

use super::{Addresses, Malformed, Pair};

/// The longest line, CR LF included (section 2.1).
pub const MAX_LENGTH: usize = 107;

/// Appends the line to `out`: `PROXY TCP4` or `PROXY TCP6` with the addresses, 104 bytes at most, or
/// `PROXY UNKNOWN` for what version 1 cannot express.
pub fn write(addresses: &Addresses<'_>, out: &mut Vec<u8>) {
    match *addresses {
        Addresses::Ip { source, destination } => write_pair(&Pair::of(source, destination), out),
        Addresses::Unix { .. } | Addresses::Unspecified => out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
    }
}

/// Reads the line at the front of `received`: the addresses and how many bytes the line has. `None` until it is
/// whole; [`MAX_LENGTH`] bytes always decide. What follows UNKNOWN is ignored, as section 2.1 demands.
///
/// # Errors
/// [`Malformed`], as soon as it is certain.
pub fn parse(received: &[u8]) -> Result<Option<(Addresses<'static>, usize)>, Malformed> {
    if !received.starts_with(&SIGNATURE[..received.len().min(SIGNATURE.len())]) {
        return Err(Malformed::Signature);
    }
    let window = &received[..received.len().min(MAX_LENGTH)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        return if window.len() == MAX_LENGTH { Err(Malformed::LineEnd) } else { Ok(None) };
    };
    let line = window[..end].strip_suffix(b"\r").ok_or(Malformed::LineEnd)?;
    let fields = line.strip_prefix(SIGNATURE).ok_or(Malformed::Protocol)?;
    Ok(Some((parse_fields(fields)?, end + 1)))
}

fn write_pair(pair: &Pair, out: &mut Vec<u8>) {
    match pair {
        Pair::V4(from, to) => {
            write!(out, "PROXY TCP4 {} {} {} {}\r\n", from.ip(), to.ip(), from.port(), to.port())
        }
        Pair::V6(from, to) => {
            out.extend_from_slice(b"PROXY TCP6 ");
            write_ipv6(from, out);
            write_ipv6(to, out);
            write!(out, "{} {}\r\n", from.port(), to.port())
        }
    }
    .expect("writing to a vector does not fail");
}

/// The address and a space. A mapped IPv4 address is written in hexadecimal like every other, as section 2.1
/// knows no dots in an IPv6 address.
fn write_ipv6(address: &SocketAddrV6, out: &mut Vec<u8>) {
    match address.ip().segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => write!(out, "::ffff:{high:x}:{low:x} "),
        _ => write!(out, "{} ", address.ip()),
    }
    .expect("writing to a vector does not fail");
}

fn parse_fields(fields: &[u8]) -> Result<Addresses<'static>, Malformed> {
    if fields == b"UNKNOWN" || fields.starts_with(b"UNKNOWN ") {
        return Ok(Addresses::Unspecified);
    }
    let (protocol, rest) = fields.split_at_checked(5).ok_or(Malformed::Protocol)?;
    match protocol {
        b"TCP4 " => parse_addresses::<Ipv4Addr>(rest),
        b"TCP6 " => parse_addresses::<Ipv6Addr>(rest),
        _ => Err(Malformed::Protocol),
    }
    .map(|(source, destination)| Addresses::Ip { source, destination })
}

/// `source destination source-port destination-port`, with exactly one space between each two.
fn parse_addresses<I: FromStr + Into<IpAddr>>(text: &[u8]) -> Result<(SocketAddr, SocketAddr), Malformed> {
    let text = str::from_utf8(text).map_err(|_| Malformed::Address)?;
    let mut fields = text.split(' ');
    let mut next = || fields.next().ok_or(Malformed::Address);
    let source: I = parse_ip(next()?)?;
    let destination: I = parse_ip(next()?)?;
    let source = SocketAddr::new(source.into(), parse_port(next()?)?);
    let destination = SocketAddr::new(destination.into(), parse_port(next()?)?);
    if fields.next().is_some() { Err(Malformed::Address) } else { Ok((source, destination)) }
}

fn parse_ip<I: FromStr>(text: &str) -> Result<I, Malformed> {
    text.parse().map_err(|_| Malformed::Address)
}

/// Decimal digits without a heading zero; the standard library would take `+1` and `007` as well.
fn parse_port(text: &str) -> Result<u16, Malformed> {
    let canonical = text == "0" || text.starts_with(|first: char| matches!(first, '1'..='9'));
    if canonical { text.parse().map_err(|_| Malformed::Address) } else { Err(Malformed::Address) }
}

const SIGNATURE: &[u8] = b"PROXY ";

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(source: &str, destination: &str) -> Addresses<'static> {
        Addresses::Ip { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    fn line(addresses: &Addresses<'_>) -> String {
        let mut out = Vec::new();
        write(addresses, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_line_of_the_specification_is_written() {
        let addresses = addresses("192.168.0.1:56324", "192.168.0.11:443");
        assert_eq!(line(&addresses), "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n");
    }

    #[test]
    fn families_are_made_alike() {
        let cases = [
            ("[2001:db8::1]:1", "[::1]:2", "PROXY TCP6 2001:db8::1 ::1 1 2\r\n"),
            ("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:2", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"),
            ("[::ffff:192.0.2.1]:1", "192.0.2.2:2", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"),
            ("192.0.2.1:1", "[::1]:2", "PROXY TCP6 ::ffff:c000:201 ::1 1 2\r\n"),
            ("[fe80::1%7]:1", "[::1]:2", "PROXY TCP6 fe80::1 ::1 1 2\r\n"),
        ];
        for (source, destination, expected) in cases {
            assert_eq!(line(&addresses(source, destination)), expected);
        }
    }

    #[test]
    fn the_longest_line_is_within_the_bound() {
        let long = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
        assert_eq!(line(&addresses(long, long)).len(), 104);
    }

    #[test]
    fn what_version_1_cannot_say_is_unknown() {
        assert_eq!(line(&Addresses::Unspecified), "PROXY UNKNOWN\r\n");
        assert_eq!(line(&Addresses::Unix { source: b"/a", destination: b"/b" }), "PROXY UNKNOWN\r\n");
    }

    #[test]
    fn a_line_is_read_up_to_its_end() {
        let received = b"PROXY TCP4 192.0.2.1 192.0.2.2 0 65535\r\nGET / HTTP/1.1\r\n";
        let expected = addresses("192.0.2.1:0", "192.0.2.2:65535");
        assert_eq!(parse(received), Ok(Some((expected, 40))));
        for end in 0..40 {
            assert_eq!(parse(&received[..end]), Ok(None), "{end} bytes");
        }
    }

    #[test]
    fn unknown_with_anything_behind_it_is_accepted() {
        assert_eq!(parse(b"PROXY UNKNOWN\r\n"), Ok(Some((Addresses::Unspecified, 15))));
        assert_eq!(parse(b"PROXY UNKNOWN \xff what ever\r\nx"), Ok(Some((Addresses::Unspecified, 27))));
    }

    #[test]
    fn lines_not_to_the_letter_are_refused() {
        let cases = [
            ("GET / HTTP/1.1\r\n", Malformed::Signature),
            ("PROXY\r", Malformed::Signature),
            ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", Malformed::LineEnd),
            ("PROXY \r\n", Malformed::Protocol),
            ("PROXY UNKNOWNS\r\n", Malformed::Protocol),
            ("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n", Malformed::Protocol),
            ("PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n", Malformed::Address),
            ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n", Malformed::Address),
            ("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", Malformed::Address),
            ("PROXY TCP4 1.2.3.4 1.2.3.04 1 2\r\n", Malformed::Address),
            ("PROXY TCP4 ::1 ::1 1 2\r\n", Malformed::Address),
            ("PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n", Malformed::Address),
            ("PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", Malformed::Address),
            ("PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", Malformed::Address),
            ("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", Malformed::Address),
            ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n", Malformed::Address),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line.as_bytes()), Err(expected), "{line:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_at_the_bound() {
        let endless = [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat();
        assert_eq!(parse(&endless[..MAX_LENGTH - 1]), Ok(None));
        assert_eq!(parse(&endless[..MAX_LENGTH]), Err(Malformed::LineEnd));
        assert_eq!(parse(&endless), Err(Malformed::LineEnd));
    }
}
