//! Lines on their way to an output: a bounded queue in front of a thread that writes. May not make anyone wait but that
//! thread. A line is written whole or not at all, and one that is not is counted.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::losses::{Losses, TOO_SLOW};

/// Whole lines that travel together, each with its newline.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) text: String,
    pub(crate) lines: u64,
}

/// What lines are written to.
pub trait Output: Write {
    /// Begins anew between two lines, where that was asked for. Returns whether the rest of a line that was begun before has
    /// no place any more.
    fn begin_anew(&mut self) -> bool {
        false
    }
}

impl Output for File {}
impl Output for io::Sink {}
impl Output for Vec<u8> {}

impl<T: Output + ?Sized> Output for Box<T> {
    fn begin_anew(&mut self) -> bool {
        (**self).begin_anew()
    }
}

/// The writer's end of an output, while there are lines to come.
pub(crate) struct Writer {
    queue: Queue,
    /// Nothing comes here. It is disconnected when the writing has ended.
    ended: Receiver<Infallible>,
}

impl Writer {
    /// A writer whose queue has room for so many batches, and its work: for a thread of its own, which may stand still for as
    /// long as `output` does. The work ends when every queue is gone and all lines are written.
    pub(crate) fn new(
        output: impl Output + Send + 'static,
        capacity: usize,
    ) -> (Self, impl FnOnce() + Send + 'static) {
        let (sender, batches) = sync_channel(capacity);
        let (alive, ended) = channel();
        let queue = Queue { sender, losses: Arc::default() };
        let losses = Arc::clone(&queue.losses);
        (Self { queue, ended }, move || write_all(output, &batches, &losses, &alive))
    }

    /// An end of the queue for someone else.
    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn losses(&self) -> &Arc<Losses> {
        &self.queue.losses
    }

    /// Has the writer look whether its output is to begin anew: one that has lines to write looks by itself.
    pub(crate) fn wake(&self) {
        // It is busy where this finds no room.
        drop(self.queue.try_send(Batch::default()));
    }

    /// Waits until everything is written, at most for `limit`: for the end of the process, which takes the thread with it.
    /// Lines that are not written then are lost.
    pub(crate) fn finish(self, limit: Duration) {
        let losses = Arc::clone(self.losses());
        drop(self.queue);
        if self.ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            losses.count(losses.waiting.load(Ordering::Relaxed), TOO_SLOW);
        }
    }
}

/// Where lines are handed over.
#[derive(Clone)]
pub(crate) struct Queue {
    sender: SyncSender<Batch>,
    pub(crate) losses: Arc<Losses>,
}

impl Queue {
    /// Hands lines over; gives them back where the queue is full. Never waits.
    pub(crate) fn try_send(&self, batch: Batch) -> Result<(), Batch> {
        let (waiting, lines) = (&self.losses.waiting, batch.lines);
        // Before the writer can have them.
        waiting.fetch_add(lines, Ordering::Relaxed);
        self.sender.try_send(batch).map_err(|error| {
            waiting.fetch_sub(lines, Ordering::Relaxed);
            match error {
                TrySendError::Full(batch) | TrySendError::Disconnected(batch) => batch,
            }
        })
    }

    /// Counts lines that there was no room for.
    pub(crate) fn count_lost(&self, lines: u64) {
        self.losses.count(lines, TOO_SLOW);
    }
}

/// The writer's work. An output that fails must not end the service: it is tried again with the next lines.
fn write_all(output: impl Output, batches: &Receiver<Batch>, losses: &Losses, _alive: &Sender<Infallible>) {
    WholeLines { output, begun: Vec::new() }.write_batches(batches, losses);
}

/// What stands for an error without a number; see errno(3).
const EIO: i32 = 5;

/// An output that an error leaves at the end of a line, or that writes the rest of the line before anything else.
struct WholeLines<W> {
    output: W,
    /// What is still to be written of a line that was begun.
    begun: Vec<u8>,
}

impl<W: Output> WholeLines<W> {
    fn write_batches(&mut self, batches: &Receiver<Batch>, losses: &Losses) {
        for batch in batches {
            if self.output.begin_anew() {
                losses.count(u64::from(!std::mem::take(&mut self.begun).is_empty()), EIO);
            }
            if let Err((error, unwritten)) = self.write(batch.text.as_bytes()) {
                losses.count(unwritten, error.raw_os_error().unwrap_or(EIO));
            }
            losses.waiting.fetch_sub(batch.lines, Ordering::Relaxed);
        }
        // A line whose end will not be written.
        losses.count(u64::from(!self.begun.is_empty()), EIO);
    }

    /// Writes lines; fails with the number of those of which nothing is written.
    fn write(&mut self, lines: &[u8]) -> Result<(), (io::Error, u64)> {
        while !self.begun.is_empty() {
            let written = write_some(&mut self.output, &self.begun).map_err(|error| (error, count(lines)))?;
            self.begun.drain(..written);
        }
        let mut rest = lines;
        while !rest.is_empty() {
            match write_some(&mut self.output, rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) => {
                    let (begun, unwritten) = rest.split_at(end_of_line(lines, rest));
                    self.begun = begun.to_vec();
                    return Err((error, count(unwritten)));
                }
            }
        }
        Ok(())
    }
}

/// How much of `rest`, which `lines` end with, belongs to a line of which something is written.
fn end_of_line(lines: &[u8], rest: &[u8]) -> usize {
    match lines[..lines.len() - rest.len()].last() {
        None | Some(b'\n') => 0,
        Some(_) => rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1),
    }
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().map(|&byte| u64::from(byte == b'\n')).sum()
}

fn write_some(output: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match output.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            // Who started the program has made a pipe or terminal non-blocking that they share with it.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// How long an output rests that takes nothing and gives no event when it will.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An output that takes as much as it has room for, and then fails.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Disk {
        fn give(&self, room: usize) {
            self.0.lock().unwrap().1 += room;
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (written, room) = &mut *self.0.lock().unwrap();
            let taken = bytes.len().min(*room);
            if taken == 0 {
                return Err(io::Error::from_raw_os_error(28));
            }
            written.extend(&bytes[..taken]);
            *room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn batch(text: &str) -> Batch {
        Batch { text: text.to_owned(), lines: count(text.as_bytes()) }
    }

    #[test]
    fn a_line_that_a_full_disk_cuts_is_finished_before_the_next_one() {
        for room in 0..16 {
            let disk = Disk::default();
            disk.give(room);
            let mut output = WholeLines { output: disk.clone(), begun: Vec::new() };
            let lost = output.write(b"one\ntwo\nthree\n").err().map_or(0, |(_, lines)| lines);
            disk.give(100);
            output.write(b"four\n").unwrap();
            let kept = disk.text();
            let mut whole = ["one\n", "two\n", "three\n"][..3 - usize::try_from(lost).unwrap()].concat();
            whole.push_str("four\n");
            assert_eq!(kept, whole, "with room for {room} bytes");
        }
    }

    #[test]
    fn what_fails_and_what_finds_no_room_is_counted_in_lines() {
        let disk = Disk::default();
        let (writer, work) = Writer::new(disk.clone(), 2);
        let (queue, losses) = (writer.queue().clone(), Arc::clone(writer.losses()));
        assert!(queue.try_send(batch("1\n2\n3\n")).is_ok() && queue.try_send(batch("4\n")).is_ok());
        let back = queue.try_send(batch("5\n6\n")).unwrap_err();
        assert_eq!((back.text.as_str(), losses.lines()), ("5\n6\n", 0));
        queue.count_lost(back.lines);
        assert_eq!((losses.lines(), losses.reason().as_str()), (2, "their reader is too slow"));
        disk.give(5);
        drop(queue);
        let writing = thread::spawn(work);
        writer.finish(Duration::MAX);
        writing.join().unwrap();
        // Of the fourth line nothing was written, of the third its end.
        assert_eq!((disk.text().as_str(), losses.lines()), ("1\n2\n3", 4));
        assert_eq!(losses.by_cause(), [2, 2]);
        assert!(losses.reason().contains("error"), "{}", losses.reason());
    }

    impl Output for Disk {}
    impl Output for io::PipeWriter {}

    /// A disk that is replaced by an empty one.
    struct Replaced(Disk, Option<Disk>);

    impl Write for Replaced {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Replaced {
        fn begin_anew(&mut self) -> bool {
            self.1.take().map(|new| self.0 = new).is_some()
        }
    }

    #[test]
    fn the_rest_of_a_line_is_not_written_to_another_file() {
        let (old, new) = (Disk::default(), Disk::default());
        old.give(2);
        new.give(100);
        let mut output = WholeLines { output: Replaced(old.clone(), None), begun: Vec::new() };
        assert!(output.write(b"one\n").is_err());
        output.output.1 = Some(new.clone());
        let (sender, batches) = sync_channel(1);
        let losses = Losses::default();
        sender.send(batch("two\n")).unwrap();
        drop(sender);
        output.write_batches(&batches, &losses);
        assert_eq!((old.text().as_str(), new.text().as_str(), losses.lines()), ("on", "two\n", 1));
    }

    /// A pipe that is full every other time (EAGAIN).
    struct Hesitant(Vec<u8>, bool);

    impl Output for Hesitant {}

    impl Write for Hesitant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                Err(ErrorKind::WouldBlock.into())
            } else {
                self.0.write(&bytes[..bytes.len().min(3)])
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_output_that_does_not_block_is_waited_for() {
        let mut output = WholeLines { output: Hesitant(Vec::new(), false), begun: Vec::new() };
        output.write(b"one\ntwo\n").unwrap();
        assert_eq!(output.output.0, b"one\ntwo\n");
    }

    #[test]
    fn the_end_does_not_wait_longer_than_it_may() {
        let (reader, output) = io::pipe().unwrap();
        let (writer, work) = Writer::new(output, 8);
        let losses = Arc::clone(writer.losses());
        // More than a pipe holds.
        let line = format!("{}\n", "x".repeat(1 << 20));
        assert!(
            writer.queue().try_send(batch(&line)).is_ok() && writer.queue().try_send(batch("last\n")).is_ok()
        );
        let writing = thread::spawn(work);
        writer.finish(Duration::from_millis(10));
        assert_eq!(losses.lines(), 2);
        drop(reader);
        writing.join().unwrap();
    }
}
