//! The backend's end of a connection, and whether the backend may take what it got for the whole.
//!
//! A stream that simply closes ends with FIN, and FIN says: that was all. So the socket is reset when it is dropped,
//! whatever the reason (a panic and the end of the worker included), unless what the client had to say is whole.

use std::ops::Deref;

use courser_balance::ServerPermit;
use courser_net::Stream;

use crate::backend::BackendStream;
use crate::backend_handshake::SecuredBackend;
use crate::pool::{Backend, Target};

pub(crate) struct Request {
    stream: Stream,
    part: Part,
    has_answered: bool,
    /// Given back after the stream is closed.
    place: ServerPermit<Target>,
}

/// How much of the request the backend has got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Nothing yet, or the backend was the last to speak: a connection that rests between two requests.
    Rest,
    /// The client was the last to speak, and may go on.
    Begun,
    /// All of it: the end was passed on.
    Whole,
    Cut,
}

impl Request {
    /// One that the backend has got nothing of, and its TLS.
    pub(crate) fn new(backend: BackendStream) -> (Self, Option<Box<SecuredBackend>>) {
        let BackendStream { stream, place, tls } = backend;
        (Self { stream, part: Part::Rest, has_answered: false, place }, tls)
    }

    /// The backend has sent something. The first time says that it works.
    pub(crate) fn has_sent(&mut self) {
        if !self.has_answered {
            self.has_answered = true;
            self.place.server().answered();
        }
    }

    pub(crate) fn server(&self) -> &Backend {
        self.place.server()
    }

    /// The server that has not sent a byte.
    pub(crate) fn silent_server(&self) -> Option<&Backend> {
        (!self.has_answered).then(|| &**self.place.server())
    }

    pub(crate) fn begun(&mut self) {
        self.change(Part::Begun);
    }

    pub(crate) fn answered(&mut self) {
        self.change(Part::Rest);
    }

    /// Passes the client's end on: FIN.
    pub(crate) fn end(&mut self) {
        self.stream.shutdown();
        self.change(Part::Whole);
    }

    /// What comes from the client is whole, as the close shows.
    pub(crate) fn complete(&mut self) {
        self.change(Part::Whole);
    }

    /// The client, or what it sent, has failed: what is missing is unknown.
    pub(crate) fn cut(&mut self) {
        self.change(Part::Cut);
    }

    /// Whether the backend may not take what it got for the whole.
    pub(crate) fn is_short(&self) -> bool {
        match self.part {
            Part::Rest => std::thread::panicking(),
            Part::Whole => false,
            Part::Begun | Part::Cut => true,
        }
    }

    fn change(&mut self, part: Part) {
        if !matches!(self.part, Part::Whole | Part::Cut) {
            self.part = part;
        }
    }
}

impl Deref for Request {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.is_short() {
            self.stream.reset_on_close();
        }
    }
}
