//! One connection through the proxy: two directions, each a reader that stamps what comes with the time it is due, and
//! a writer that waits for it.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use courser_net::timer::now;
use courser_net::{Address, Stream, Then};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::{PIECE, PIECES, Path};

/// What is on its way.
struct Piece {
    due: Duration,
    what: What,
}

enum What {
    Bytes(Vec<u8>),
    /// FIN: no more bytes from this side.
    End,
    Reset,
}

/// How one of its tasks came to its end.
#[derive(PartialEq, Eq)]
enum Ended {
    Whole,
    /// A reset has been passed on: nothing more is of use.
    Reset,
}

/// From the accept to the last byte.
pub(super) async fn carry(path: Rc<Path>, client: Stream) {
    let established = now() + path.rtt;
    let client = Rc::new(client);
    let mut tasks = JoinSet::new();
    let (up, ascending) = channel(PIECES);
    tasks.spawn_local(read(Rc::clone(&path), Rc::clone(&client), established, up));
    path.pacer.until(established + path.half()).await;
    let Ok(server) = Stream::connect(&Address::Ip(path.to)).await else {
        path.pacer.until(now() + path.half()).await;
        client.reset_on_close();
        return;
    };
    let server = Rc::new(server);
    let (down, descending) = channel(PIECES);
    tasks.spawn_local(read(Rc::clone(&path), Rc::clone(&server), Duration::ZERO, down));
    tasks.spawn_local(write(Rc::clone(&path), ascending, Rc::clone(&server), Rc::clone(&client)));
    tasks.spawn_local(write(path, descending, client, server));
    while let Some(Ok(Ended::Whole)) = tasks.join_next().await {}
}

/// Takes what `from` sends; nothing of it leaves it before `earliest`.
async fn read(path: Rc<Path>, from: Rc<Stream>, earliest: Duration, queue: Sender<Piece>) -> Ended {
    loop {
        let mut bytes = Vec::new();
        let read = poll_fn(|cx| from.poll_read(cx, &mut bytes, |bytes| bytes.reserve_exact(PIECE))).await;
        let due = now().max(earliest) + path.half();
        bytes.shrink_to_fit();
        let what = match read {
            Ok(0) => What::End,
            Ok(_) => What::Bytes(bytes),
            Err(_) => What::Reset,
        };
        let is_last = !matches!(what, What::Bytes(_));
        if queue.send(Piece { due, what }).await.is_err() || is_last {
            return Ended::Whole;
        }
    }
}

/// Gives it to `to` when it is due. Where that is refused, whoever sent it is told by a reset, as long after.
async fn write(path: Rc<Path>, mut queue: Receiver<Piece>, to: Rc<Stream>, from: Rc<Stream>) -> Ended {
    while let Some(Piece { due, what }) = queue.recv().await {
        path.pacer.until(due).await;
        match what {
            What::Bytes(bytes) => {
                if send(&to, &bytes).await.is_err() {
                    path.pacer.until(now() + path.half()).await;
                    from.reset_on_close();
                    return Ended::Reset;
                }
            }
            What::End => {
                to.shutdown();
                return Ended::Whole;
            }
            What::Reset => {
                to.reset_on_close();
                return Ended::Reset;
            }
        }
    }
    Ended::Whole
}

async fn send(to: &Stream, bytes: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += poll_fn(|cx| to.poll_write(cx, &bytes[sent..], Then::Wait)).await?;
    }
    Ok(())
}
