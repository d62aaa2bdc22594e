//! The question as people write it: `cores for 5000 new/s, 20000 resumed/s, 4 KB, RSA-2048`, or the other way round:
//! `what do 4 cores carry: 1 new, 4 resumed, 4 KB, RSA-2048`.
//!
//! The order does not matter, nor do words that only connect. What is not understood is told with its place, and never
//! passed over: a plan for another question would be worse than none.

use std::fmt;

use courser_lab::target::KeyKind;

use super::model::Version;

/// What is to be served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// Connections a second with a full handshake.
    pub(crate) new: f64,
    /// Connections a second of clients that come back.
    pub(crate) resumed: f64,
    /// Requests of a connection.
    pub(crate) requests: f64,
    /// Bytes of an answer.
    pub(crate) object: f64,
    pub(crate) key: KeyKind,
    pub(crate) version: Version,
    /// How busy cores may be: 0.7 is 70 %.
    pub(crate) utilisation: f64,
    /// Cores of which it is asked what they carry: then connections a second are proportions alone.
    pub(crate) cores: Option<f64>,
}

/// What is wrong with a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentenceError {
    /// The character where it is, from 1; none when something is missing.
    pub(crate) column: Option<usize>,
    /// What is wrong, and what would be right.
    pub(crate) what: String,
}

impl fmt::Display for SentenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "character {column}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for SentenceError {}

/// What holds where nothing is said.
const DEFAULTS: Question = Question {
    new: 0.0,
    resumed: 0.0,
    requests: 1.0,
    object: 1024.0,
    key: KeyKind::P256,
    version: Version::Tls13,
    utilisation: 0.7,
    cores: None,
};

/// Words that change nothing.
const FILLERS: [&str; 36] = [
    "a",
    "an",
    "and",
    "answer",
    "answers",
    "at",
    "body",
    "busy",
    "can",
    "carries",
    "carry",
    "certificate",
    "connection",
    "connections",
    "core",
    "cores",
    "do",
    "does",
    "each",
    "every",
    "for",
    "here",
    "how",
    "key",
    "keys",
    "machine",
    "many",
    "object",
    "objects",
    "of",
    "per",
    "second",
    "this",
    "to",
    "what",
    "with",
];

impl std::str::FromStr for Question {
    type Err = SentenceError;

    fn from_str(text: &str) -> Result<Self, SentenceError> {
        let tokens = tokens(text);
        let mut question = DEFAULTS;
        let mut rest = tokens.as_slice();
        while let [token, after @ ..] = rest {
            rest = match &token.what {
                What::Number(number) => question.number(*number, token, after)?,
                What::Word(word) => question.word(word, token, after)?,
            };
        }
        question.checked()
    }
}

impl Question {
    /// Connections a second.
    pub(crate) fn connections(&self) -> f64 {
        self.new + self.resumed
    }

    /// A number, and what it counts.
    fn number<'a>(
        &mut self,
        number: f64,
        token: &Token,
        after: &'a [Token],
    ) -> Result<&'a [Token], SentenceError> {
        let unit = after.first().and_then(Token::word);
        let Some(unit) = unit else {
            return Err(token.wrong(format!("{number}: of what? Write 5000 new/s, 4 KB, 3 requests or 70 %")));
        };
        match unit {
            "new" | "new/s" | "full" | "full/s" => self.new += number,
            "resumed" | "resumed/s" | "returning" | "returning/s" => self.resumed += number,
            "request" | "requests" | "requests/connection" => self.requests = number,
            "core" | "cores" => self.cores = Some(number),
            "%" | "percent" => self.utilisation = number / 100.0,
            "b" | "byte" | "bytes" => self.object = number,
            "kb" | "kib" => self.object = number * 1024.0,
            "mb" | "mib" => self.object = number * 1024.0 * 1024.0,
            "requests/s" | "connections/s" | "/s" | "tps" => {
                let what = "say how many of them are new and how many come back: 5000 new/s, 20000 resumed/s, \
                            and how many requests each connection makes";
                return Err(after[0].wrong(what.into()));
            }
            other => {
                let what = format!("{number} {other}: not understood; {}", nearest(other));
                return Err(after[0].wrong(what));
            }
        }
        Ok(behind_rate(&after[1..]))
    }

    /// A word by itself.
    fn word<'a>(
        &mut self,
        word: &str,
        token: &Token,
        after: &'a [Token],
    ) -> Result<&'a [Token], SentenceError> {
        let next = after.first();
        let number = next.and_then(Token::number);
        match word {
            "tls" | "tlsv" => {
                self.version = number.and_then(version).ok_or_else(|| token.wrong(VERSIONS.into()))?;
                return Ok(&after[1..]);
            }
            "rsa" | "rsa-" => {
                let Some(bits) = number else {
                    return Err(token.wrong("RSA of how many bits? RSA-2048".into()));
                };
                self.key = key(&format!("RSA-{bits}"), token)?;
                return Ok(&after[1..]);
            }
            "ecdsa" => self.key = KeyKind::P256,
            "p-256" | "p256" => self.key = KeyKind::P256,
            "p-384" | "p384" => self.key = KeyKind::P384,
            "ed25519" => self.key = KeyKind::Ed25519,
            _ if FILLERS.contains(&word) => {}
            _ if word.starts_with("rsa") => self.key = key(&spelled("RSA-", &word[3..]), token)?,
            _ if word.starts_with("tls") => {
                let parsed = word[3..].trim_start_matches(['v', '-']).parse().ok().and_then(version);
                self.version = parsed.ok_or_else(|| token.wrong(VERSIONS.into()))?;
            }
            _ => return Err(token.wrong(format!("{word:?} is not understood; {}", nearest(word)))),
        }
        Ok(after)
    }

    fn checked(self) -> Result<Self, SentenceError> {
        let wrong = |what: &str| Err(SentenceError { column: None, what: what.to_owned() });
        if self.cores.is_some_and(|cores| !(0.01..=1e5).contains(&cores)) {
            return wrong("a machine has up to 100000 cores");
        }
        if self.cores.is_some() && self.connections() <= 0.0 {
            return wrong("cores carry how much of what? Write for instance 4 cores: 1 new, 4 resumed");
        }
        if self.connections() <= 0.0 || !self.connections().is_finite() {
            return wrong("how many connections? Write for instance 5000 new/s, 20000 resumed/s");
        }
        if !(0.01..=1.0).contains(&self.utilisation) {
            return wrong("cores can be 1 to 100 % busy; 70 % leaves room for bursts");
        }
        if !(1.0..=1e6).contains(&self.requests) {
            return wrong("a connection makes 1 to 1000000 requests");
        }
        if self.object > 1e9 {
            return wrong("answers are at most 1 GB");
        }
        Ok(self)
    }
}

const VERSIONS: &str = "of TLS there is 1.2 and 1.3 here";

fn version(number: f64) -> Option<Version> {
    [(1.2, Version::Tls12), (1.3, Version::Tls13)]
        .into_iter()
        .find(|(known, _)| (known - number).abs() < 1e-9)
        .map(|(_, version)| version)
}

fn key(text: &str, token: &Token) -> Result<KeyKind, SentenceError> {
    text.parse().map_err(|why: String| token.wrong(why))
}

fn spelled(front: &str, rest: &str) -> String {
    format!("{front}{}", rest.trim_start_matches('-'))
}

/// What follows a rate and only says that it is one: `/s`, `sessions`.
fn behind_rate(mut rest: &[Token]) -> &[Token] {
    const BEHIND: [&str; 6] = ["/s", "clients", "handshakes", "sessions", "/connection", "/second"];

    while rest.first().and_then(Token::word).is_some_and(|word| BEHIND.contains(&word)) {
        rest = &rest[1..];
    }
    rest
}

fn nearest(word: &str) -> String {
    const KNOWN: [&str; 10] =
        ["new/s", "resumed/s", "requests", "kb", "mb", "bytes", "percent", "tls", "rsa-2048", "p-256"];

    let near = KNOWN.iter().min_by_key(|known| strsim::damerau_levenshtein(known, word));
    format!("did you mean {}?", near.unwrap_or(&KNOWN[0]))
}

/// A number or a word, and where it is.
#[derive(Debug)]
struct Token {
    column: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    Number(f64),
    /// In lower case.
    Word(String),
}

impl Token {
    fn word(&self) -> Option<&str> {
        match &self.what {
            What::Word(word) => Some(word),
            What::Number(_) => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self.what {
            What::Number(number) => Some(number),
            What::Word(_) => None,
        }
    }

    fn wrong(&self, what: String) -> SentenceError {
        SentenceError { column: Some(self.column), what }
    }
}

/// Words between spaces and commas, each number apart from the unit that stands at it: `4KB`, `70%`, `20k resumed/s`.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars: Vec<(usize, char)> = text.chars().enumerate().collect();
    chars.push((chars.len(), ' '));
    let mut word: Vec<(usize, char)> = Vec::new();
    for (at, char) in &chars {
        let (at, char) = (*at, *char);
        // A comma between digits groups them; else it separates.
        let groups = char == ',' && is_grouping(&chars, at) && word.iter().all(|(_, c)| c.is_ascii_digit());
        if groups && !word.is_empty() {
            continue;
        }
        if char.is_whitespace() || [',', ';', ':', '?'].contains(&char) {
            split(&std::mem::take(&mut word), &mut tokens);
        } else {
            word.push((at, char));
        }
    }
    tokens
}

/// Whether exactly three digits follow.
fn is_grouping(chars: &[(usize, char)], comma: usize) -> bool {
    let digits = chars[comma + 1..].iter().take_while(|(_, char)| char.is_ascii_digit()).count();
    digits == 3
}

/// A number at the front of a word, with `k` and `M` for thousands and millions, and the rest.
fn split(word: &[(usize, char)], tokens: &mut Vec<Token>) {
    let Some((column, _)) = word.first() else { return };
    let digits = word.iter().take_while(|(_, char)| char.is_ascii_digit() || *char == '.').count();
    let text = |part: &[(usize, char)]| part.iter().map(|(_, char)| *char).collect::<String>();
    let number = text(&word[..digits]).parse::<f64>().ok().filter(|number| number.is_finite());
    let Some(number) = number else {
        tokens.push(Token { column: column + 1, what: What::Word(text(word).to_lowercase()) });
        return;
    };
    let rest = &word[digits..];
    let (factor, rest) = match rest {
        [(_, 'k' | 'K')] => (1e3, &rest[1..]),
        [(_, 'M')] => (1e6, &rest[1..]),
        _ => (1.0, rest),
    };
    tokens.push(Token { column: column + 1, what: What::Number(number * factor) });
    if let Some((column, _)) = rest.first() {
        tokens.push(Token { column: column + 1, what: What::Word(text(rest).to_lowercase()) });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Question {
        text.parse().unwrap_or_else(|why: SentenceError| panic!("{text}: {why}"))
    }

    fn wrong(text: &str) -> String {
        text.parse::<Question>().unwrap_err().to_string()
    }

    #[test]
    fn the_sentence_of_the_manual() {
        let question = read("cores for 5000 new/s, 20000 resumed/s, 4 KB, RSA-2048");
        let due =
            Question { new: 5000.0, resumed: 20_000.0, object: 4096.0, key: KeyKind::Rsa(2048), ..DEFAULTS };
        assert_eq!(question, due);
    }

    #[test]
    fn the_same_in_other_words() {
        let due = read("5000 new/s, 20000 resumed/s, 4 KB, RSA-2048, TLS 1.2, 3 requests, 60 %");
        for text in [
            "RSA 2048 TLS1.2 5k new sessions per second and 20k resumed /s with 3 requests per connection, 4KB, at 60%",
            "at 60 percent busy: 4kb answers, 5,000 full handshakes, 20,000 returning clients, rsa2048, tlsv1.2, 3 requests",
        ] {
            assert_eq!(read(text), due, "{text}");
        }
        assert_eq!(read("100 new/s ecdsa").key, KeyKind::P256);
    }

    #[test]
    fn the_question_the_other_way_round() {
        let due = Question {
            new: 1.0,
            resumed: 4.0,
            object: 4096.0,
            key: KeyKind::Rsa(2048),
            cores: Some(4.0),
            ..DEFAULTS
        };
        for text in [
            "what do 4 cores carry: 1 new, 4 resumed, 4 KB, RSA-2048",
            "what can 4 cores of this machine carry with 1 new to 4 returning clients, 4 KB each, RSA 2048?",
        ] {
            assert_eq!(read(text), due, "{text}");
        }
        assert!(wrong("what do 4 cores carry").starts_with("cores carry how much of what?"));
        assert!(wrong("0 cores, 1 new").contains("up to 100000 cores"));
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_place() {
        assert_eq!(wrong("5000 nwe/s"), "character 6: 5000 nwe/s: not understood; did you mean new/s?");
        assert!(wrong("10 new/s on pentium").starts_with("character 10: \"on\" is not understood"));
        assert!(wrong("7").starts_with("character 1: 7: of what?"));
        assert!(wrong("10 new/s TLS 1.1").starts_with("character 10: of TLS there is"));
        assert!(wrong("500 requests/s").contains("how many of them are new"));
        assert!(wrong("4 KB").starts_with("how many connections?"));
        assert!(wrong("1 new/s at 700 %").contains("1 to 100 %"));
        assert!(wrong("1 new/s RSA-7").starts_with("character 9: "));
    }

    proptest! {
        #[test]
        fn any_text_is_a_question_or_an_error(text in "\\PC{0,60}") {
            let _ = text.parse::<Question>();
        }

        #[test]
        fn any_words_of_the_language_are_a_question_or_an_error(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "5000", "1.2", "1e9", "4KB", "70%", "new/s", "resumed", "/s", "RSA", "rsa-", "TLS", "tlsv1.3",
                    ",", "1,000", "1,00", "k", "requests", "ecdsa", "per", "cores", "999999999999999999999999",
                ]),
                0..12,
            ),
        ) {
            if let Ok(question) = words.join(" ").parse::<Question>() {
                prop_assert!(question.connections() > 0.0 && question.utilisation > 0.0);
            }
        }
    }
}
