//! Receives from the server: opens its records, assembles its messages, follows its key updates.

use std::io::{self, ErrorKind, Read, Write};

use super::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, HostileClient, KEY_UPDATE,
    message_length, read_record,
};

/// One thing that the server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Application data of one record.
    Data(Vec<u8>),
    /// Level and description.
    Alert(u8, u8),
    /// A KeyUpdate, which is followed, and whether it requests another.
    KeyUpdate(bool),
    /// Another handshake message, of this type.
    Message(u8),
    /// A ChangeCipherSpec.
    ChangeCipherSpec,
    /// The end of the TCP stream.
    Fin,
    /// The TCP connection was reset.
    Reset,
}

/// All that the server sends until it ends the TCP connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedAll {
    /// Application data.
    pub data: Vec<u8>,
    /// Level and description of each alert, with close_notify.
    pub alerts: Vec<(u8, u8)>,
    /// How many KeyUpdates have come.
    pub key_updates: usize,
    /// Whether it ended with a reset, and not with FIN.
    pub reset: bool,
}

impl<S: Read + Write> HostileClient<S> {
    /// Returns the next thing that the server sends.
    ///
    /// # Errors
    /// Of the stream; `InvalidData` when a record cannot be opened.
    pub fn receive(&mut self) -> io::Result<Received> {
        loop {
            if let Some(received) = self.received.pop_front() {
                return Ok(received);
            }
            match read_record(&mut self.stream) {
                Ok(Some(record)) => self.open(&record)?,
                Ok(None) => return Ok(Received::Fin),
                Err(error) if is_reset(&error) => return Ok(Received::Reset),
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives so many bytes of application data.
    ///
    /// # Errors
    /// As [`HostileClient::receive`]; `InvalidData` when the server sends anything else meanwhile but tickets and key
    /// updates.
    pub fn receive_data(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut data = Vec::with_capacity(length);
        while data.len() < length {
            match self.receive()? {
                Received::Data(part) => data.extend(part),
                Received::KeyUpdate(_) | Received::Message(_) => {}
                other => {
                    let detail = format!("{other:?} after {} of {length} bytes", data.len());
                    return Err(io::Error::new(ErrorKind::InvalidData, detail));
                }
            }
        }
        Ok(data)
    }

    /// Receives until the server ends the TCP connection.
    ///
    /// # Errors
    /// As [`HostileClient::receive`].
    pub fn receive_all(&mut self) -> io::Result<ReceivedAll> {
        let mut answer = ReceivedAll::default();
        loop {
            match self.receive()? {
                Received::Data(part) => answer.data.extend(part),
                Received::Alert(level, description) => answer.alerts.push((level, description)),
                Received::KeyUpdate(_) => answer.key_updates += 1,
                Received::Message(_) | Received::ChangeCipherSpec => {}
                Received::Fin => return Ok(answer),
                Received::Reset => return Ok(ReceivedAll { reset: true, ..answer }),
            }
        }
    }

    /// Opens a record of the server and queues what is in it.
    fn open(&mut self, record: &[u8]) -> io::Result<()> {
        let (kind, content) = match &mut self.read {
            Some(keys) if record[0] != CHANGE_CIPHER_SPEC => keys.open(record).ok_or_else(|| {
                io::Error::new(ErrorKind::InvalidData, "the server's record cannot be opened")
            })?,
            _ => (record[0], record[HEADER..].to_vec()),
        };
        match kind {
            APPLICATION_DATA => self.received.push_back(Received::Data(content)),
            ALERT if content.len() == 2 => self.received.push_back(Received::Alert(content[0], content[1])),
            HANDSHAKE => self.open_messages(&content),
            CHANGE_CIPHER_SPEC => {
                self.received.push_back(Received::ChangeCipherSpec);
                self.read = self.next_read.take().or(self.read.take());
            }
            _ => return Err(io::Error::new(ErrorKind::InvalidData, format!("a record of type {kind}"))),
        }
        Ok(())
    }

    fn open_messages(&mut self, fragment: &[u8]) {
        self.message.extend_from_slice(fragment);
        while let Some(length) = message_length(&self.message).filter(|&length| length <= self.message.len())
        {
            let message: Vec<u8> = self.message.drain(..length).collect();
            self.received.push_back(match (message[0], &mut self.read) {
                (KEY_UPDATE, Some(keys)) => {
                    keys.update();
                    Received::KeyUpdate(message.last() == Some(&1))
                }
                (other, _) => Received::Message(other),
            });
        }
    }
}

fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
