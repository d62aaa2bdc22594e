//! Answers of a store, and their faults. Bytes from outside: nothing in them panics, and none gets into a log.

use std::fmt;

use redis::{ErrorKind, RedisError, Value};

/// The largest value that is stored or taken. A session has some hundred bytes, with a chain of client certificates a few
/// thousand.
pub const MAX_VALUE_LEN: usize = 64 * 1024;

/// The answer to a question, once it is known to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The value, of at most [`MAX_VALUE_LEN`] bytes.
    Found(Vec<u8>),
    /// There is none under this name.
    Missing,
    /// A command was carried out.
    Done,
}

/// Reads an answer as it is on the wire (RESP, <https://redis.io/docs/latest/develop/reference/protocol-spec/>): for
/// fuzzing what the store's bytes go through.
///
/// # Errors
/// Says what is wrong with it.
pub fn read_answer(bytes: &[u8]) -> Result<Answer, String> {
    judge(redis::parse_redis_value(bytes)).map_err(|fault| fault.to_string())
}

pub(crate) fn judge(value: Result<Value, RedisError>) -> Result<Answer, Fault> {
    match value? {
        Value::BulkString(value) if value.len() <= MAX_VALUE_LEN => Ok(Answer::Found(value)),
        Value::BulkString(_) => Err(Fault::Protocol("a value that is too large")),
        Value::Nil => Ok(Answer::Missing),
        Value::Okay | Value::Int(_) => Ok(Answer::Done),
        Value::SimpleString(text) if text == "PONG" => Ok(Answer::Done),
        Value::ServerError(error) => Err(Fault::refused(Some(error.code()))),
        _ => Err(Fault::Protocol("an answer of another type")),
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// None came in time.
    Timeout,
    /// There is no connection, or none any more.
    Lost(String),
    /// An error is the answer: its code.
    Refused(String),
    /// What came is none.
    Protocol(&'static str),
}

impl Fault {
    /// Codes are foreign text, and go into a log: words like WRONGTYPE, or nothing.
    fn refused(code: Option<&str>) -> Self {
        let is_code = |code: &&str| {
            (1..=24).contains(&code.len())
                && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        };
        Self::Refused(code.filter(is_code).unwrap_or("an unknown error").to_owned())
    }

    /// Whether the breaker counts it. An error that comes in time costs nothing, and shows that the store is up.
    pub(crate) fn is_failure(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::Parse => Self::Protocol("an answer that is not in its protocol"),
            ErrorKind::Server(_) | ErrorKind::Extension => Self::refused(error.code()),
            // The system's or the TLS library's words, and none of the peer's.
            ErrorKind::Io | ErrorKind::Client => Self::Lost(error.to_string()),
            _ => Self::Lost(error.category().to_owned()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("no answer in time"),
            Self::Lost(why) => f.write_str(why),
            Self::Refused(code) => {
                write!(f, "it refuses: {code}")?;
                advice(code).map_or(Ok(()), |advice| write!(f, " ({advice})"))
            }
            Self::Protocol(what) => write!(f, "it sends {what}"),
        }
    }
}

/// What to do about a refusal that has a known remedy.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "ERR" => "if at the login: is there such a database, and may its user +select it?",
        "MOVED" | "ASK" => "it is part of a cluster: use redis-cluster://",
        "NOAUTH" => "it wants a password",
        "NOPERM" => "its user needs +get +set +del +ping ~courser:*",
        "OOM" => "its memory is full: raise maxmemory, or set maxmemory-policy to volatile-ttl",
        "READONLY" => "it is a replica: name the primary, or use redis-sentinel://",
        "WRONGPASS" => "user or password is wrong, or the user is off",
        "WRONGTYPE" => "somebody else writes below courser:*",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Answer, String> {
        read_answer(bytes)
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(read(b"$5\r\nhello\r\n"), Ok(Answer::Found(b"hello".into())));
        assert_eq!(read(b"$0\r\n\r\n"), Ok(Answer::Found(vec![])));
        assert_eq!(read(b"$-1\r\n"), Ok(Answer::Missing));
        assert_eq!(read(b"_\r\n"), Ok(Answer::Missing));
        assert_eq!(read(b"+OK\r\n"), Ok(Answer::Done));
        assert_eq!(read(b"+PONG\r\n"), Ok(Answer::Done));
        assert_eq!(read(b":1\r\n"), Ok(Answer::Done));
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        let says = |bytes: &[u8], what: &str| {
            let said = read(bytes).expect_err("it is no answer");
            assert!(said.contains(what), "{said}");
        };
        says(b"*1\r\n$1\r\na\r\n", "another type");
        says(b"+hello\r\n", "another type");
        says(b"HTTP/1.1 400 Bad Request\r\n\r\n", "not in its protocol");
        says(b"-LOADING Redis is loading\r\n", "LOADING");
        says(b"-READONLY You can't write\r\n", "redis-sentinel://");
        says(b"-WRONGTYPE Operation\r\n", "somebody else");
        says(b"-MOVED 1 127.0.0.1:7\r\n", "redis-cluster://");
        let large = [b"$65537\r\n".as_slice(), &[7; 65537], b"\r\n"].concat();
        says(&large, "too large");
    }

    #[test]
    fn no_foreign_text_gets_into_a_line() {
        for text in ["\x1b[31m", "lower", "A-B", "VERYLONGVERYLONGVERYLONGVERYLONG", "ŒŒ"] {
            let said = read(format!("-{text} detail\r\n").as_bytes()).expect_err("it is an error");
            assert_eq!(said, "it refuses: an unknown error");
        }
    }
}
