//! The session cache on disk, sealed, from one start to the next. An error is logged and no failure: sessions are worth
//! less than a service.

use std::fmt;
use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser_session::{Cache, Cursor, Provenance, ResumptionFailure, SecretBytes, Vault};
use courser_telemetry::event::{Level, log};

use crate::file_error::FileError;
use crate::fleet_keys::unix_now;
use crate::input_file;
use crate::secret_file;

/// Bytes of sessions that are taken from the cache at a time.
const PORTION: usize = 64 * 1024;

/// The file of the cache, and the keys that seal it.
pub(crate) struct SessionFile {
    pub(crate) path: PathBuf,
    pub(crate) vault: Vault,
    pub(crate) cache: Arc<Cache>,
}

/// The problem of a file that [`has_other_content`].
pub(crate) const OTHER_CONTENT: &str = "it has other content, which would be lost";

/// Whether a file has content that is not a session cache.
pub(crate) fn has_other_content(path: &Path) -> bool {
    let file = match input_file::open(path) {
        Ok((file, _)) => file,
        Err(FileError::NoFile(_)) => return true,
        Err(_) => return false,
    };
    let (mut begin, longest) = (Vec::new(), Vault::FILE_HEADER.len() as u64);
    file.take(longest).read_to_end(&mut begin).is_ok_and(|read| read > 0) && begin != Vault::FILE_HEADER
}

impl SessionFile {
    /// Puts what the file has into the cache, and removes it: a second start must not resume what was deleted since.
    pub(crate) fn restore(&self) {
        let file = match input_file::open(&self.path) {
            Ok((file, _)) => file,
            Err(refusal) if refusal.is_missing() => return,
            Err(refusal) => return self.warn("cannot be read", &refusal),
        };
        let now = unix_now();
        let mut saved = self.vault.read(BufReader::new(file), now);
        for session in saved.by_ref() {
            // Another host may have deleted it since.
            if self.cache.peek(&session.id, &session.policy, now).err() == Some(ResumptionFailure::Deleted) {
                continue;
            }
            self.cache.put(
                &session.id,
                session.policy,
                session.state,
                session.lifespan,
                Provenance::Local,
                now,
            );
        }
        let counts = saved.counts();
        log(
            Level::Info,
            format_args!(
                "sessions from {}: {} restored, {} expired or of other keys, {} damaged",
                self.path.display(),
                counts.taken,
                counts.over,
                counts.damaged
            ),
        );
        if let Err(error) = fs::remove_file(&self.path) {
            self.warn("cannot be removed", &error);
        }
    }

    pub(crate) fn save(&self) {
        if has_other_content(&self.path) {
            return self.warn("is not written", &OTHER_CONTENT);
        }
        let mut count = 0;
        let saved = secret_file::replace_with(&self.path, |file| {
            let mut file = BufWriter::new(file);
            count = self.write(&mut file)?;
            file.flush()
        });
        match saved {
            Ok(()) => log(Level::Info, format_args!("{count} sessions saved in {}", self.path.display())),
            Err(refusal) => self.warn("cannot be written: the session cache is lost", &refusal),
        }
    }

    /// Returns the number of sessions.
    fn write(&self, file: &mut impl Write) -> io::Result<usize> {
        let now = unix_now();
        file.write_all(Vault::FILE_HEADER)?;
        let (mut count, mut next, mut sealed) = (0, Some(Cursor::START), Vec::new());
        while let Some(cursor) = next {
            let (sessions, after) = self.cache.export(cursor, PORTION, now);
            for session in &sessions {
                let nonce = SecretBytes::random().map_err(io::Error::other)?;
                self.vault.append(&mut sealed, session, *nonce.as_bytes(), now);
                count += 1;
            }
            file.write_all(&sealed)?;
            sealed.clear();
            next = after;
        }
        Ok(count)
    }

    fn warn(&self, what: &str, why: &dyn fmt::Display) {
        log(Level::Warning, format_args!("the session file {} {what}: {why}", self.path.display()));
    }
}
