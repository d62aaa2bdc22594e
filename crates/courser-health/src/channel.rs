//! A check's connection: bytes in and out, over TLS where the server has it.

use std::future::poll_fn;
use std::io;

use courser_net::Stream;
use courser_net::stream::Then;
use courser_tls::{BackendConnection, BackendTls, State};

/// A connection that has nothing to say yet.
pub(crate) struct Channel {
    stream: Stream,
    tls: Option<Box<Tls>>,
}

struct Tls {
    connection: BackendConnection,
    /// Records that are not whole yet.
    received: Vec<u8>,
    /// What has come with the handshake and is not read yet.
    early: Vec<u8>,
    has_ended: bool,
}

impl Channel {
    pub(crate) fn plain(stream: Stream) -> Self {
        Self { stream, tls: None }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(tls) = &mut self.tls else { return send(&self.stream, bytes).await };
        let mut records = Vec::new();
        tls.connection.send(bytes, &mut tls.received, &mut records).map_err(|failure| failure.to_string())?;
        send(&self.stream, &records).await
    }

    /// Adds what has come to `bytes`. Returns how much that is; nothing is the end.
    pub(crate) async fn read(&mut self, bytes: &mut Vec<u8>) -> Result<usize, String> {
        let Some(tls) = &mut self.tls else { return receive(&self.stream, bytes).await };
        let before = bytes.len();
        bytes.append(&mut tls.early);
        while bytes.len() == before && !tls.has_ended {
            let mut out = Vec::new();
            tls.step(&self.stream, bytes, &mut out).await?;
            send(&self.stream, &out).await?;
        }
        Ok(bytes.len() - before)
    }

    /// Makes a handshake, in which the server proves who it is. Returns the version that was agreed on.
    pub(crate) async fn secure(mut self, tls: &BackendTls) -> Result<(Self, &'static str), String> {
        // Sessions are for connections: a check that resumed one would see no certificate.
        let connection = tls.without_sessions().connect(None, None).map_err(|failure| failure.to_string())?;
        let (mut tls, mut early) =
            (Tls { connection, received: Vec::new(), early: Vec::new(), has_ended: false }, Vec::new());
        let mut hello = Vec::new();
        let begun = tls.connection.process(&mut [], &mut early, &mut hello);
        begun.map_err(|failure| failure.to_string())?;
        send(&self.stream, &hello).await?;
        loop {
            let mut out = Vec::new();
            let result = tls.step(&self.stream, &mut early, &mut out).await;
            // The alert too, where the handshake has failed.
            let sent = send(&self.stream, &out).await;
            result.and(sent)?;
            if let Some(info) = tls.connection.finish_handshake() {
                tls.early = early;
                self.tls = Some(Box::new(tls));
                return Ok((self, info.version_name()));
            }
            if tls.has_ended {
                return Err("closed in the handshake".to_owned());
            }
        }
    }
}

impl Tls {
    /// Waits for bytes of the server, and processes them.
    async fn step(
        &mut self,
        stream: &Stream,
        plaintext: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.has_ended = receive(stream, &mut self.received).await? == 0;
        let progress = self.connection.process(&mut self.received, plaintext, out);
        let progress = progress.map_err(|failure| failure.to_string())?;
        self.received.drain(..progress.consumed);
        self.has_ended |= progress.state == State::PeerClosed;
        Ok(())
    }
}

async fn receive(stream: &Stream, bytes: &mut Vec<u8>) -> Result<usize, String> {
    let got = poll_fn(|cx| stream.poll_read(cx, bytes, |bytes| bytes.reserve(PIECE))).await;
    got.map_err(|error| text(&error))
}

async fn send(stream: &Stream, mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| stream.poll_write(cx, bytes, Then::Wait)).await;
        bytes = &bytes[written.map_err(|error| text(&error))?..];
    }
    Ok(())
}

/// Without the number that the standard library adds.
pub(crate) fn text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// More than an answer needs that is looked at.
const PIECE: usize = 1024;
