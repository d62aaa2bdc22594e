//! A pipe that is not read: for programs whose output blocks.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    thread,
    time::{Duration, Instant},
};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::PATIENCE;

/// The least that a pipe can hold: one page.
const CAPACITY: i32 = 4096;

/// The reading end. It reads only in the calls below.
#[derive(Debug)]
pub struct BlockedPipe {
    reader: File,
    /// What has been read of a line.
    partial_line: Vec<u8>,
}

impl BlockedPipe {
    /// The pipe, and the end that a program gets as an output.
    pub fn new() -> (Self, File) {
        let (reader, writer) = io::pipe().expect("there are descriptors left");
        let reader = File::from(OwnedFd::from(reader));
        fcntl(&reader, FcntlArg::F_SETPIPE_SZ(CAPACITY)).expect("a new pipe can be shrunk");
        // The two ends have flags of their own: the program's end still blocks.
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe can be non-blocking");
        (Self { reader, partial_line: Vec::new() }, File::from(OwnedFd::from(writer)))
    }

    /// Fills it with empty lines until it takes no byte more.
    pub fn fill(&self) {
        // Opened anew: the flags of the program's end stay as they are.
        let path = format!("/proc/self/fd/{}", self.reader.as_raw_fd());
        let mut writer = OpenOptions::new()
            .write(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(path)
            .expect("a pipe can be opened by its descriptor");
        loop {
            match writer.write(b"\n") {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("cannot fill the pipe: {error}"),
            }
        }
    }

    /// Reads on until a line contains `part`, and returns the line.
    ///
    /// # Panics
    /// When no such line comes in time.
    pub fn wait_line(&mut self, part: &str) -> String {
        let mut seen = Vec::new();
        while let Some(line) = self.next_line(&seen) {
            if line.contains(part) {
                return line;
            }
            seen.push(line);
        }
        panic!("the pipe has ended without {part:?}: {seen:#?}")
    }

    /// Reads on to the end and returns the lines that are not empty.
    ///
    /// # Panics
    /// When the end does not come in time.
    pub fn rest(mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.next_line(&lines) {
            lines.push(line);
        }
        lines.retain(|line| !line.is_empty());
        lines
    }

    fn next_line(&mut self, seen: &[String]) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut byte = [0];
        loop {
            match self.reader.read(&mut byte) {
                Ok(0) => return None,
                Ok(_) if byte == *b"\n" => {
                    return Some(
                        String::from_utf8_lossy(&std::mem::take(&mut self.partial_line)).into_owned(),
                    );
                }
                Ok(_) => self.partial_line.extend(byte),
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("no line came: {error}, after {seen:#?}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_takes_nothing_until_it_is_read() {
        let (mut pipe, mut writer) = BlockedPipe::new();
        pipe.fill();
        let written = thread::spawn(move || writer.write_all(b"first\nlast\n"));
        assert!(!written.is_finished());
        assert_eq!(pipe.wait_line("fir"), "first");
        written.join().unwrap().unwrap();
        assert_eq!(pipe.rest(), ["last"]);
    }
}
