use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::task::Poll;

use courser_net::{Address, Connector, Stream, Then};

use crate::run;

/// More than one segment, even on the loopback interface.
const QUESTION: usize = 100_000;
const ANSWER: usize = 3_000;

#[test]
fn bytes_and_segments_are_counted_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let info = std::thread::scope(|scope| {
        scope.spawn(|| answer(&listener));
        run(async {
            let stream = Connector::default().connect(address).await.unwrap();
            let fresh = stream.tcp_info().unwrap();
            assert_eq!(fresh.bytes_sent.unwrap_or_default(), 0);
            assert_eq!((fresh.segments_out, fresh.segments_in), (2, 1), "SYN and ACK, SYN-ACK");
            ask(&stream).await;
            stream.tcp_info().unwrap()
        })
    });
    let sent = u64::try_from(QUESTION).unwrap() + info.bytes_retransmitted.unwrap_or_default();
    assert_eq!(info.bytes_sent.unwrap_or(sent), sent);
    // Our SYN, their FIN.
    assert_eq!(info.bytes_acked, u64::try_from(QUESTION).unwrap() + 1);
    assert_eq!(info.bytes_received, u64::try_from(ANSWER).unwrap() + 1);
    assert!(info.data_segments_out >= 2 && info.data_segments_out < info.segments_out, "{info:?}");
    assert!(info.data_segments_in >= 1 && info.data_segments_in < info.segments_in, "{info:?}");
    assert!(!info.rtt.is_zero() && info.segment_size > 500, "{info:?}");
}

#[test]
fn a_unix_socket_has_none() {
    let folder = std::env::temp_dir().join(format!("courser-net-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let stream = run(Stream::connect(&Address::Unix(path))).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(stream.tcp_info().is_err());
}

fn answer(listener: &TcpListener) {
    let (mut peer, _) = listener.accept().unwrap();
    peer.read_exact(&mut vec![0; QUESTION]).unwrap();
    peer.write_all(&[0; ANSWER]).unwrap();
}

/// Sends the question and reads up to the end of the stream.
async fn ask(stream: &Stream) {
    let mut rest = &[0; QUESTION][..];
    std::future::poll_fn(|cx| {
        while !rest.is_empty() {
            let Poll::Ready(written) = stream.poll_write(cx, rest, Then::Wait) else { return Poll::Pending };
            rest = &rest[written.unwrap()..];
        }
        Poll::Ready(())
    })
    .await;
    let mut received = Vec::new();
    let read =
        |cx: &mut std::task::Context<'_>| stream.poll_read(cx, &mut received, |buffer| buffer.reserve(4096));
    let mut read = read;
    while std::future::poll_fn(&mut read).await.unwrap() > 0 {}
}
