//! Why something did not come about, and what that says of the next try.

use std::fmt;
use std::io;

use instant_acme::{Error, Problem};

use crate::plan::Setback;

/// A failure in words, with what it means for the next try.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) setback: Setback,
    pub(crate) words: String,
    /// The CA's type of it, `rateLimited` for example.
    pub(crate) kind: Option<String>,
}

impl Trouble {
    pub(crate) fn unreachable(words: impl Into<String>) -> Self {
        Self { setback: Setback::Unreachable, words: words.into(), kind: None }
    }

    pub(crate) fn handed_over() -> Self {
        let words = "another process takes over, where the order goes on".to_owned();
        Self { setback: Setback::HandedOver, words, kind: None }
    }

    pub(crate) fn refused(words: impl Into<String>) -> Self {
        Self { setback: Setback::Refused, words: words.into(), kind: None }
    }

    /// Whether the CA knows what was asked for no more, as an order that has ended long ago.
    pub(crate) fn is_answer(&self) -> bool {
        self.kind.is_some() && self.setback == Setback::Refused
    }

    /// `retry_after`: what the answer said besides (RFC 8555, section 6.6), Unix seconds.
    pub(crate) fn of(error: &Error, retry_after: Option<i64>) -> Self {
        let Error::Api(problem) = error else { return Self::unreachable(error.to_string()) };
        let kind = kind(problem);
        let setback = match (kind.as_str(), problem.status) {
            ("rateLimited", _) | (_, Some(429)) => Setback::Limited { until: retry_after },
            ("badNonce" | "serverInternal", _) | (_, Some(500..)) => Setback::Unreachable,
            _ => Setback::Refused,
        };
        Self { setback, words: words(problem), kind: Some(kind) }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::unreachable(error.to_string())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// Behind `urn:ietf:params:acme:error:` (RFC 8555, section 6.7).
fn kind(problem: &Problem) -> String {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    kind.rsplit(':').next().unwrap_or_default().to_owned()
}

/// As the CA says it, with what it says of single names; the kind in front.
pub(crate) fn words(problem: &Problem) -> String {
    let kind = kind(problem);
    let mut words = match (&problem.detail, kind.is_empty()) {
        (Some(detail), false) => format!("{kind}: {detail}"),
        (Some(detail), true) => detail.clone(),
        (None, false) => kind,
        (None, true) => "the CA does not say why".to_owned(),
    };
    for part in problem.subproblems.iter().filter_map(|part| part.detail.as_deref()) {
        words.push_str("; ");
        words.push_str(part);
    }
    printable(&words)
}

/// One line that a terminal can be given: a CA may quote what a server has sent.
fn printable(words: &str) -> String {
    const MOST: usize = 500;
    words.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, retry_after: Option<i64>) -> Trouble {
        Trouble::of(&Error::Api(serde_json::from_str(text).unwrap()), retry_after)
    }

    #[test]
    fn what_the_ca_counts_is_told_from_what_it_does_not() {
        let kind =
            |kind: &str| of(&format!("{{\"type\":\"urn:ietf:params:acme:error:{kind}\"}}"), Some(7)).setback;
        assert_eq!(kind("rateLimited"), Setback::Limited { until: Some(7) });
        assert_eq!(kind("unauthorized"), Setback::Refused);
        assert_eq!(kind("badNonce"), Setback::Unreachable);
        assert_eq!(kind("serverInternal"), Setback::Unreachable);
        assert_eq!(of("{\"status\":503}", None).setback, Setback::Unreachable);
        assert_eq!(of("{\"status\":429}", None).setback, Setback::Limited { until: None });
    }

    #[test]
    fn the_words_are_the_cas_on_one_line() {
        let text = "{\"type\":\"urn:ietf:params:acme:error:caa\",\"detail\":\"no\\u001b[2J\\nway\",\
                    \"subproblems\":[{\"detail\":\"a.example: none\"}]}";
        assert_eq!(of(text, None).words, "caa: no [2J way; a.example: none");
        assert_eq!(of("{}", None).words, "the CA does not say why");
    }
}
