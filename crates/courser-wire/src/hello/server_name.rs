//! The `server_name` extension (RFC 6066 section 3).

use super::malformed::Malformed;
use crate::bytes::Reader;

/// The host name in the list, `None` if it holds names of other types only.
///
/// A final dot is cut off and an IP address kept: both are forbidden, both are sent by clients that work with
/// other servers. Everything else that a host cannot be called is an error, so that the name may be compared,
/// logged and passed to a backend as it is: ASCII letters, digits, `-`, `_`, `.`, and `:` of an IPv6 address.
pub(super) fn read<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Malformed> {
    const HOST_NAME: u8 = 0;
    let list = reader.vector16().ok_or(Malformed::Truncated("server_name"))?;
    if list.is_empty() {
        return Err(Malformed::BadLength("server_name"));
    }
    let (mut names, mut host) = (Reader::new(list), None);
    while !names.is_empty() {
        let kind = names.u8().ok_or(Malformed::Truncated("server_name"))?;
        let name = names.vector16().ok_or(Malformed::Truncated("server_name"))?;
        if kind == HOST_NAME && host.replace(host_name(name)?).is_some() {
            return Err(Malformed::SeveralServerNames);
        }
    }
    Ok(host)
}

fn host_name(bytes: &[u8]) -> Result<&str, Malformed> {
    let relative = bytes.strip_suffix(b".").unwrap_or(bytes);
    // 255 bytes is what the name takes at most in a DNS message (RFC 1035 section 2.3.4), 63 a label.
    let labels = relative.len() <= 255
        && relative.split(|&byte| byte == b'.').all(|label| (1..=63).contains(&label.len()));
    if !labels || !relative.iter().all(|&byte| may_be_in_name(byte)) {
        return Err(Malformed::ServerName);
    }
    str::from_utf8(relative).map_err(|_| Malformed::ServerName)
}

const fn may_be_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_hosts_have_are_kept_as_sent() {
        let names = [
            "a",
            "WWW.Example.org",
            "xn--bcher-kva.example",
            "_dmarc.a-b.example",
            "192.0.2.1",
            "2001:db8::1",
        ];
        for name in names {
            assert_eq!(host_name(name.as_bytes()), Ok(name));
        }
    }

    #[test]
    fn one_final_dot_is_cut_off() {
        assert_eq!(host_name(b"example.org."), Ok("example.org"));
        assert_eq!(host_name(b"example.org.."), Err(Malformed::ServerName));
    }

    #[test]
    fn a_name_has_255_bytes_at_most() {
        let longest = [&"a".repeat(63)[..]; 4].join(".");
        assert_eq!(host_name(longest.as_bytes()), Ok(&longest[..]));
        let longer = format!("{}.b", &longest[..254]);
        assert_eq!((longer.len(), host_name(longer.as_bytes())), (256, Err(Malformed::ServerName)));
    }

    #[test]
    fn what_no_host_is_called_is_refused() {
        let long = "a.".repeat(130);
        let label = "a".repeat(64);
        let names = [
            "",
            ".",
            "a..b",
            ".a",
            "a b",
            "a\0b",
            "a\r\nb",
            "b\u{fc}cher",
            "a/b",
            "*.a",
            "a\"b",
            &long,
            &label,
        ];
        for name in names {
            assert_eq!(host_name(name.as_bytes()), Err(Malformed::ServerName), "{name:?}");
        }
    }
}
