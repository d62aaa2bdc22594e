//! A chunked body (RFC 9112, section 7.1), in whatever pieces it comes.

use httparse::{Status, parse_chunk_size};

/// The longest line of a size with its extensions, and the most bytes of trailer fields.
const LINES: usize = 8 * 1024;

/// Where in a chunked body a reader is.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Bytes of trailer fields so far.
    trailer: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Size,
    Data(u64),
    /// The line end behind a chunk.
    DataEnd,
    Trailer,
    Done,
}

/// What the front of the input was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Bytes of the body.
    Body(&'a [u8]),
    /// Nothing of the body.
    Frame,
    /// Everything there is, and more is needed.
    Starved,
    /// The end of the body, which was in front of the input.
    End,
}

impl Chunks {
    /// Takes the next piece off the front of `input`. Says why it is none.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Piece<'a>, &'static str> {
        match self.state {
            State::Done => Ok(Piece::End),
            _ if input.is_empty() => Ok(Piece::Starved),
            State::Data(left) => Ok(Piece::Body(self.data(left, input))),
            State::Size | State::DataEnd | State::Trailer => self.frame(input),
        }
    }

    fn data<'a>(&mut self, left: u64, input: &mut &'a [u8]) -> &'a [u8] {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        let (data, rest) = input.split_at(count);
        *input = rest;
        self.state = match left - count as u64 {
            0 => State::DataEnd,
            left => State::Data(left),
        };
        data
    }

    fn frame<'a>(&mut self, input: &mut &'a [u8]) -> Result<Piece<'a>, &'static str> {
        let end = input.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
        let (front, rest) = input.split_at(end.unwrap_or(input.len()));
        *input = rest;
        if self.line.len() + front.len() > LINES {
            return Err("endless line in a chunked body");
        }
        if end.is_none() {
            self.line.extend_from_slice(front);
            return Ok(Piece::Starved);
        }
        if self.line.is_empty() {
            self.state = self.after(front)?;
        } else {
            self.line.extend_from_slice(front);
            let line = std::mem::take(&mut self.line);
            self.state = self.after(&line)?;
        }
        Ok(Piece::Frame)
    }

    /// The state after this line.
    fn after(&mut self, line: &[u8]) -> Result<State, &'static str> {
        match (self.state, line) {
            (State::DataEnd, b"\r\n") => Ok(State::Size),
            (State::DataEnd, _) => Err("chunk longer than it said"),
            (State::Trailer, b"\r\n") => Ok(State::Done),
            (State::Trailer, _) => {
                self.trailer += line.len();
                if self.trailer > LINES { Err("endless trailer") } else { Ok(State::Trailer) }
            }
            _ => match size(line)? {
                0 => Ok(State::Trailer),
                size => Ok(State::Data(size)),
            },
        }
    }
}

fn size(line: &[u8]) -> Result<u64, &'static str> {
    // The library takes a line without a digit for zero.
    let digit = line.first().is_some_and(u8::is_ascii_hexdigit);
    match parse_chunk_size(line) {
        Ok(Status::Complete((end, size))) if digit && end == line.len() => Ok(size),
        _ => Err("bad chunk size"),
    }
}
