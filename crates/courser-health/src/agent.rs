//! The text of a server's agent: HAProxy's, so that agents that exist work (Configuration Manual 2.6, `agent-check`).

use std::num::NonZeroU32;

/// The longest line, in bytes: a few words and a sentence.
pub const LONGEST: usize = 512;

/// What an agent says. What it does not mention stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `up`; `down`, `fail` or `stopped`.
    pub is_up: Option<bool>,
    /// `ready`; `drain` or `maint`, which are the same here: neither leaves new connections.
    pub is_drained: Option<bool>,
    /// `75%`: of the configured weight, at most 25,600.
    pub percent: Option<u16>,
    /// `maxconn:30`; 0 is for none.
    pub limit: Option<Option<NonZeroU32>>,
    /// Words that mean nothing.
    pub unknown: usize,
    /// The line, for people: in printable ASCII.
    pub line: String,
}

/// The line does not end, or is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLine;

/// Reads the first line of `bytes`, which ends in CR or LF; `None` until it is whole.
///
/// # Errors
/// Beyond [`LONGEST`] bytes without an end.
pub fn read(bytes: &[u8]) -> Result<Option<Report>, NoLine> {
    let front = &bytes[..bytes.len().min(LONGEST)];
    match front.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(end) => Ok(Some(Report::of(&front[..end]))),
        None if front.len() == LONGEST => Err(NoLine),
        None => Ok(None),
    }
}

impl Report {
    /// Words by spaces, tabs and commas; of two of a kind the last one counts. A description follows a `#`.
    fn of(line: &[u8]) -> Self {
        let printable = |&byte: &u8| if matches!(byte, b' '..=b'~') { char::from(byte) } else { '?' };
        let shown: String = line.iter().map(printable).collect();
        let mut report = Self { line: shown.trim().to_owned(), ..Self::default() };
        let words = line.split(|byte| matches!(byte, b' ' | b'\t' | b','));
        for word in words.filter(|word| !word.is_empty()).take_while(|word| word[0] != b'#') {
            report.take(&String::from_utf8_lossy(word).to_ascii_lowercase());
        }
        report
    }

    fn take(&mut self, word: &str) {
        match word {
            "up" => self.is_up = Some(true),
            "down" | "fail" | "stopped" => self.is_up = Some(false),
            "ready" => self.is_drained = Some(false),
            "drain" | "maint" => self.is_drained = Some(true),
            _ => self.take_number(word),
        }
    }

    fn take_number(&mut self, word: &str) {
        if let Some(percent) = word.strip_suffix('%').and_then(number) {
            self.percent = u16::try_from(percent.min(25_600)).ok();
        } else if let Some(limit) = word.strip_prefix("maxconn:").and_then(number) {
            self.limit = Some(NonZeroU32::new(limit));
        } else {
            self.unknown += 1;
        }
    }
}

/// Digits alone; those that are too many stand for the most.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(line: &str) -> Report {
        read(format!("{line}\n").as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn each_word_of_the_manual_is_understood() {
        let said = report("up, ready 75%\tmaxconn:30");
        assert_eq!((said.is_up, said.is_drained, said.percent), (Some(true), Some(false), Some(75)));
        assert_eq!((said.limit, said.unknown), (Some(NonZeroU32::new(30)), 0));
        for word in ["down", "fail", "stopped", "DOWN"] {
            assert_eq!(report(word).is_up, Some(false), "{word}");
        }
        for word in ["drain", "maint"] {
            assert_eq!(report(word).is_drained, Some(true), "{word}");
        }
        assert_eq!(report("maxconn:0").limit, Some(None));
    }

    #[test]
    fn a_description_is_shown_and_not_obeyed() {
        let said = report("down # up again at nine");
        assert_eq!(said.is_up, Some(false));
        assert_eq!((said.unknown, said.line.as_str()), (0, "down # up again at nine"));
    }

    #[test]
    fn the_last_word_of_a_kind_counts_and_what_means_nothing_is_counted() {
        let said = report("50% up 20% down 50 1.5% +9% maxconn:x");
        assert_eq!((said.percent, said.is_up, said.unknown), (Some(20), Some(false), 4));
        assert_eq!(report("99999%").percent, Some(25_600));
    }

    #[test]
    fn a_line_without_an_end_is_waited_for_up_to_a_bound() {
        assert_eq!(read(b"up"), Ok(None));
        assert_eq!(read(&[b'x'; LONGEST]), Err(NoLine));
        assert!(read(b"up\r\nwhatever follows").unwrap().is_some());
    }
}
