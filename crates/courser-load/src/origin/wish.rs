//! What a request asks for, by its query: [`super`] has the table.

use std::time::Duration;

/// No answer is later than this.
const MAX_DELAY: Duration = Duration::from_secs(3600);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wish {
    pub(super) content: Content,
    pub(super) size: u64,
    pub(super) status: u16,
    pub(super) chunked: bool,
    pub(super) delay: Duration,
}

/// What the answer has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Content {
    Object,
    Page,
    Peer,
    Proxy,
    Echo,
    Hash,
}

impl Wish {
    /// Reads a request's target; none where its query is wrong.
    pub(super) fn read(target: &str) -> Option<Self> {
        let mut wish =
            Self { content: Content::Object, size: 1024, status: 200, chunked: false, delay: Duration::ZERO };
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let mut size = None;
        for part in query.split('&') {
            match part.split_once('=').unwrap_or((part, "")) {
                ("s", value) => size = Some(read_size(value)?),
                ("d", value) => wish.delay = read_delay(value)?,
                ("status", value) => wish.status = read_status(value)?,
                ("chunked", _) => wish.chunked = true,
                ("page", _) => wish.content = Content::Page,
                ("peer", _) => wish.content = Content::Peer,
                ("proxy", _) => wish.content = Content::Proxy,
                ("echo", _) => wish.content = Content::Echo,
                ("hash", _) => wish.content = Content::Hash,
                _ => {}
            }
        }
        wish.size = size.unwrap_or(if wish.status == 200 { 1024 } else { 0 });
        Some(wish)
    }
}

fn read_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    number(digits)?.checked_mul(unit)
}

fn read_delay(text: &str) -> Option<Duration> {
    type Unit = fn(u64) -> Duration;
    let units: [(&str, Unit); 3] =
        [("us", Duration::from_micros), ("ms", Duration::from_millis), ("s", Duration::from_secs)];
    let (digits, unit) = units.iter().find_map(|(unit, make)| Some((text.strip_suffix(unit)?, make)))?;
    Some(unit(number(digits)?)).filter(|delay| *delay <= MAX_DELAY)
}

fn read_status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|status| (200..600).contains(status))
}

/// Digits alone: `parse` would take a plus sign.
fn number(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_bytes_or_has_a_unit() {
        let size = |target| Wish::read(target).map(|wish| wish.size);
        assert_eq!(size("/?s=20k"), Some(20 << 10));
        assert_eq!(size("/x?a=b&s=1M"), Some(1 << 20));
        assert_eq!(size("/?s=3g"), Some(3 << 30));
        assert_eq!(size("/?s=0"), Some(0));
        assert_eq!(size("/any/path"), Some(1024));
        for bad in
            ["/?s=", "/?s=k", "/?s=-1", "/?s=+1", "/?s=1x", "/?s=99999999999999999999", "/?s=99999999999g"]
        {
            assert_eq!(size(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_delay_has_a_unit_and_a_bound() {
        let delay = |target| Wish::read(target).map(|wish| wish.delay);
        assert_eq!(delay("/?d=5ms"), Some(Duration::from_millis(5)));
        assert_eq!(delay("/?d=250us&s=1"), Some(Duration::from_micros(250)));
        assert_eq!(delay("/?d=1s"), Some(Duration::from_secs(1)));
        for bad in ["/?d=5", "/?d=", "/?d=ms", "/?d=3601s", "/?d=18446744073709551615s"] {
            assert_eq!(delay(bad), None, "{bad}");
        }
    }

    #[test]
    fn another_status_has_no_body_unless_asked() {
        let wish = |target| Wish::read(target).unwrap();
        assert_eq!((wish("/?status=503").status, wish("/?status=503").size), (503, 0));
        assert_eq!(wish("/?status=503&s=2").size, 2);
        assert_eq!(Wish::read("/?status=101"), None);
    }
}
