//! Files that are read at the start, public ones and secret ones: opened without waiting for anything, and never more than
//! a bound of them. What is in them is not known here.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::file_error::{FileError, LONGEST};

/// Reads a file that is no secret.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    read_up_to(path, LONGEST)
}

/// As [`read`], for files that may be longer.
pub(crate) fn read_up_to(path: &Path, longest: u64) -> Result<Vec<u8>, FileError> {
    let (file, found) = open(path)?;
    read_bounded(file, &found, longest).map(|mut bytes| std::mem::take(&mut *bytes))
}

/// Opens a regular file, also behind symbolic links. A FIFO without a writer, or a device, would block the start for ever;
/// opening a device may have any effect.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), FileError> {
    let nonblocking = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(nonblocking.bits()).expect("flags of open(2) are an int");
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        // A socket cannot be opened at all (ENXIO), which would not explain the problem.
        std::fs::metadata(path).ok().and_then(|found| other_kind(&found)).unwrap_or(FileError::System(error))
    })?;
    let found = file.metadata()?;
    other_kind(&found).map_or(Ok((file, found)), Err)
}

/// A file's bytes, wiped when done with.
pub(crate) fn read_whole(file: File, found: &Metadata) -> Result<Zeroizing<Vec<u8>>, FileError> {
    read_bounded(file, found, LONGEST)
}

fn read_bounded(file: File, found: &Metadata, longest: u64) -> Result<Zeroizing<Vec<u8>>, FileError> {
    // The whole size at once: a vector that grows leaves its bytes behind in freed memory.
    let size = usize::try_from(found.len().min(longest)).unwrap_or_default() + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(size));
    file.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest { Err(FileError::TooLong(longest)) } else { Ok(bytes) }
}

/// What it is, where it is no regular file.
fn other_kind(found: &Metadata) -> Option<FileError> {
    let kind = found.file_type();
    let what = match () {
        () if kind.is_file() => return None,
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Some(FileError::NoFile(what))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use courser_testkit::Folder;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_file_is_refused_by_its_kind_without_waiting() {
        let folder = Folder::new();
        let (fifo, socket) = (folder.join("fifo"), folder.join("socket"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _listening = UnixListener::bind(&socket).unwrap();
        for (path, what) in [
            (fifo.as_path(), "a FIFO"),
            (&socket, "a socket"),
            (folder.path(), "a folder"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            let refusal = read(path).unwrap_err();
            assert!(matches!(refusal, FileError::NoFile(kind) if kind == what), "{what}: {refusal}");
        }
    }

    #[test]
    fn a_link_leads_to_its_file() {
        let folder = Folder::new();
        let (file, link) = (folder.write("..data", "one"), folder.join("link"));
        symlink(&file, &link).unwrap();
        assert_eq!(read(&link).unwrap(), b"one");
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let folder = Folder::new();
        let most = usize::try_from(LONGEST).unwrap();
        assert_eq!(read(&folder.write("most", vec![b'a'; most])).unwrap().len(), most);
        let refusal = read(&folder.write("more", vec![b'a'; most + 1])).unwrap_err();
        assert!(matches!(refusal, FileError::TooLong(_)), "{refusal}");
    }
}
