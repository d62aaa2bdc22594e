//! Files in memory that have no path (memfd_create(2)), to be given to another process as a descriptor and never changed again.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;

/// Makes a file with what `write` writes, and seals it: nobody can change it any more, nor take the seals off.
///
/// # Errors
/// The system's, and those of `write`.
pub fn sealed(name: &str, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Before Linux 6.3.
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    };
    let mut file = BufWriter::new(File::from(made?));
    write(&mut file)?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// Such a file from another process, at its beginning.
///
/// # Errors
/// Where it is no file in memory, or somebody could still change it.
pub fn open(descriptor: OwnedFd) -> io::Result<File> {
    if !fcntl_get_seals(&descriptor)?.contains(SEALS) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the memory is not sealed"));
    }
    let mut file = File::from(descriptor);
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn what_is_sealed_is_read_and_cannot_be_changed() {
        let descriptor = sealed("test", |file| file.write_all(b"secrets")).unwrap();
        let mut writer = File::from(descriptor.try_clone().unwrap());
        assert!(writer.write_all(b"!").is_err() && writer.set_len(0).is_err());
        let mut text = String::new();
        open(descriptor).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "secrets");
    }

    #[test]
    fn memory_that_others_can_change_is_refused() {
        let open_to_all = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(open(open_to_all).unwrap_err().to_string().contains("not sealed"));
        let file = File::open("/dev/null").unwrap();
        assert!(open(file.into()).is_err());
    }
}
