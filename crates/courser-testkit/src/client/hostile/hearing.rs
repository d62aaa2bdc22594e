//! What the server says: its records opened, its messages put together, its key updates followed.

use std::io::{self, ErrorKind, Read, Write};

use super::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, HostileClient, KEY_UPDATE,
    message_length, read_record,
};

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Application data of one record.
    Data(Vec<u8>),
    /// Level and description.
    Alert(u8, u8),
    /// A KeyUpdate, which is followed, and whether it asks for another.
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

/// All that the server says until it ends the TCP connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
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
    /// What the server says next.
    ///
    /// # Errors
    /// Of the stream; `InvalidData` when a record cannot be opened.
    pub fn hear(&mut self) -> io::Result<Heard> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(heard);
            }
            match read_record(&mut self.stream) {
                Ok(Some(record)) => self.open(&record)?,
                Ok(None) => return Ok(Heard::Fin),
                Err(error) if is_reset(&error) => return Ok(Heard::Reset),
                Err(error) => return Err(error),
            }
        }
    }

    /// Listens until so many bytes of application data have come.
    ///
    /// # Errors
    /// As [`HostileClient::hear`]; `InvalidData` when the server says or does something else meanwhile, other than to
    /// send tickets and update its keys.
    pub fn hear_data(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut data = Vec::with_capacity(length);
        while data.len() < length {
            match self.hear()? {
                Heard::Data(part) => data.extend(part),
                Heard::KeyUpdate(_) | Heard::Message(_) => {}
                other => {
                    let told = format!("{other:?} after {} of {length} bytes", data.len());
                    return Err(io::Error::new(ErrorKind::InvalidData, told));
                }
            }
        }
        Ok(data)
    }

    /// Listens until the server ends the TCP connection.
    ///
    /// # Errors
    /// As [`HostileClient::hear`].
    pub fn hear_out(&mut self) -> io::Result<Answer> {
        let mut answer = Answer::default();
        loop {
            match self.hear()? {
                Heard::Data(part) => answer.data.extend(part),
                Heard::Alert(level, description) => answer.alerts.push((level, description)),
                Heard::KeyUpdate(_) => answer.key_updates += 1,
                Heard::Message(_) | Heard::ChangeCipherSpec => {}
                Heard::Fin => return Ok(answer),
                Heard::Reset => return Ok(Answer { reset: true, ..answer }),
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
            APPLICATION_DATA => self.heard.push_back(Heard::Data(content)),
            ALERT if content.len() == 2 => self.heard.push_back(Heard::Alert(content[0], content[1])),
            HANDSHAKE => self.open_messages(&content),
            CHANGE_CIPHER_SPEC => {
                self.heard.push_back(Heard::ChangeCipherSpec);
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
            self.heard.push_back(match (message[0], &mut self.read) {
                (KEY_UPDATE, Some(keys)) => {
                    keys.update();
                    Heard::KeyUpdate(message.last() == Some(&1))
                }
                (other, _) => Heard::Message(other),
            });
        }
    }
}

fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
