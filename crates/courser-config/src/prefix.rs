//! Lengths of prefixes: which networks are told apart in overload.

use crate::problem::{Problem, Problems};
use crate::read;
use crate::value::Value;

/// A length of prefixes, `ipv4/24` or `ipv6/56`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixLength {
    /// Of which addresses.
    pub family: Family,
    /// From 1 to 32, or to 64: what is behind belongs to one link (RFC 4291, section 2.5.4).
    pub bits: u8,
}

/// A kind of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4, also where it is mapped to IPv6.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Lengths of each family at most: a client is counted once for each.
const MOST: usize = 4;

/// Reads a list of them.
pub(crate) fn lengths(value: &Value) -> Result<Vec<PrefixLength>, Problems> {
    let lengths = read::distinct_or_none(value, length)?;
    for family in [Family::Ipv4, Family::Ipv6] {
        if lengths.iter().filter(|length| length.family == family).count() > MOST {
            let help = format!("at most {MOST} of each family: a client is counted once for each");
            return Err(Problem::at(&value.origin, "too many lengths of prefixes", Some(help)).into());
        }
    }
    Ok(lengths)
}

fn length(value: &Value) -> Result<PrefixLength, Problems> {
    let text = read::text(value, "the length of a prefix")?;
    let wrong = |what: String, help: String| Err(Problem::at(&value.origin, what, Some(help)).into());
    let (family, bits) = text.split_once('/').unwrap_or((text, ""));
    let (family, most) = match family {
        "ipv4" => (Family::Ipv4, 32),
        "ipv6" => (Family::Ipv6, 64),
        _ => {
            return wrong(
                format!("`{text}` is not the length of a prefix"),
                "write for example `ipv4/24` or `ipv6/56`".into(),
            );
        }
    };
    match bits.parse::<u8>() {
        Ok(bits) if (1..=most).contains(&bits) => Ok(PrefixLength { family, bits }),
        _ => wrong(format!("`{bits}` is not the length of a prefix"), format!("a number from 1 to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Result<Vec<PrefixLength>, String> {
        lengths(&Value::builtin(toml)).map_err(|problems| problems.to_string())
    }

    #[test]
    fn lengths_are_read_and_their_mistakes_reported() {
        let v4 = PrefixLength { family: Family::Ipv4, bits: 24 };
        let v6 = PrefixLength { family: Family::Ipv6, bits: 56 };
        assert_eq!(read(r#"["ipv4/24", "ipv6/56"]"#).unwrap(), [v4, v6]);
        assert_eq!(read(r#""ipv4/24""#).unwrap(), [v4]);
        assert_eq!(read("[]").unwrap(), []);
        for (wrong, said) in [
            (r#"["ipv4/33"]"#, "from 1 to 32"),
            (r#"["ipv4/0"]"#, "from 1 to 32"),
            (r#"["ipv6/65"]"#, "from 1 to 64"),
            (r#"["ipv6"]"#, "from 1 to 64"),
            (r#"["/24"]"#, "write for example `ipv4/24`"),
            (r#"["10.0.0.0/24"]"#, "write for example `ipv4/24`"),
            ("[24]", "expected a string"),
            (r#"["ipv4/24", "ipv4/24"]"#, "twice"),
            (r#"["ipv4/32", "ipv4/28", "ipv4/24", "ipv4/20", "ipv4/16"]"#, "at most 4"),
        ] {
            let why = read(wrong).unwrap_err();
            assert!(why.contains(said), "{wrong}: {why}");
        }
    }
}
