//! Files with secrets: refused where other users can read them, written so that only their owner can, and whole or not at
//! all. May not know what is in them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use courser_net::account::Account;
use zeroize::Zeroizing;

use crate::exposure::Exposure;
use crate::file_error::FileError;
use crate::input_file;

/// Reads a secret that is text.
pub(crate) fn read(path: &Path, reader: &Account) -> Result<Zeroizing<String>, FileError> {
    let bytes = read_bytes(path, reader)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| FileError::NotText)?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Reads a secret that `reader` has to itself.
pub(crate) fn read_bytes(path: &Path, reader: &Account) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let (file, found) = input_file::open(path)?;
    match Exposure::of(&found, reader) {
        Some(exposure) => Err(FileError::Exposed(exposure)),
        None => input_file::read_whole(file, &found),
    }
}

/// Writes a secret to a file that is not there yet.
pub(crate) fn create(path: &Path, text: &str) -> Result<(), FileError> {
    write_new(path, |file| file.write_all(text.as_bytes()))?;
    sync_folder(path)
}

/// Writes a secret in place of the file's present content, which is wiped. After a crash the file has either of both.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace_with(path, |file| file.write_all(bytes))
}

/// As [`replace`], with whatever `write` writes.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), FileError> {
    let new = beside(path);
    // Left from a crash; it was never in use.
    let _ = fs::remove_file(&new);
    write_new(&new, write)?;
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let old = if is_file { OpenOptions::new().write(true).open(path).ok() } else { None };
    fs::rename(&new, path)?;
    sync_folder(path)?;
    if let Some(old) = old {
        // As far as the file system overwrites in place.
        wipe(old)?;
    }
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

fn write_new(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), FileError> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = write(&mut file).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // A full disk leaves a useless part.
        let _ = fs::remove_file(path);
        return Err(error.into());
    }
    Ok(())
}

/// Overwrites a file that has lost its name. One with another name is still in use.
fn wipe(mut file: File) -> Result<(), FileError> {
    let found = file.metadata()?;
    if found.nlink() > 0 {
        return Ok(());
    }
    let zeros = vec![0; usize::try_from(found.len()).unwrap_or(0)];
    file.write_all(&zeros)?;
    Ok(file.sync_all()?)
}

/// A name is on the disk once its folder is.
fn sync_folder(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(File::open(folder)?.sync_all()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    use courser_testkit::Folder;

    use super::*;

    fn read(path: &Path) -> Result<Zeroizing<String>, FileError> {
        super::read(path, &Account::current())
    }

    #[test]
    fn a_secret_is_read_back_and_has_its_owner_alone() {
        let folder = Folder::new();
        let path = folder.join("secret");
        create(&path, "one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(*read(&path).unwrap(), "one");
        assert!(
            create(&path, "two")
                .unwrap_err()
                .help(&path, &Account::current())
                .unwrap()
                .contains("would be lost")
        );
        let old = File::open(&path).unwrap();
        replace(&path, b"three").unwrap();
        assert_eq!(*read(&path).unwrap(), "three");
        let mut wiped = Vec::new();
        (&old).read_to_end(&mut wiped).unwrap();
        assert_eq!(wiped, [0; 3]);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = Folder::new();
        let path = folder.join("secret");
        create(&path, "one").unwrap();
        for mode in [0o604, 0o640, 0o666, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refusal = read(&path).unwrap_err();
            assert!(matches!(refusal, FileError::Exposed(_)), "{mode:o}: {refusal}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(*read(&path).unwrap(), "one");
    }

    #[test]
    fn what_cannot_be_a_secret_is_refused() {
        let folder = Folder::new();
        let path = folder.join("secret");
        assert!(read(&path).unwrap_err().is_missing());
        replace(&path, &[0xff, 0xfe]).unwrap();
        assert!(matches!(read(&path).unwrap_err(), FileError::NotText));
        replace(&path, &vec![b'a'; 1 << 21]).unwrap();
        assert!(matches!(read(&path).unwrap_err(), FileError::TooLong(_)));
    }
}
