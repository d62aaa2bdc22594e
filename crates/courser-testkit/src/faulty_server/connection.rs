//! One connection to a faulty server.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use courser_wire::{
    hello::ClientHello,
    record::{Assembly, assemble},
};
use rustls::{HandshakeKind, ServerConnection};
use socket2::SockRef;

use super::{CLOSE_WAIT, Fault, LATENESS, STALL, Shared, false_resumption, http};

/// A ClientHello longer than this is refused.
const HELLO_LIMIT: usize = 64 * 1024;

pub(super) fn serve(shared: &Shared, mut socket: TcpStream, number: u64) -> io::Result<()> {
    match shared.fault {
        Fault::Silent => {
            shared.count_fault();
            return read_to_end(&mut socket);
        }
        Fault::Stall if shared.fault.picks(number) => {
            shared.count_fault();
            thread::sleep(STALL);
        }
        _ => {}
    }
    let received = read_hello(&mut socket)?;
    if before_handshake(shared, &mut socket, &received, number)? {
        return read_to_end(&mut socket);
    }
    let mut tls = handshake(shared, &mut socket, &received)?;
    if shared.fault == Fault::ResetAfterFinished {
        shared.count_fault();
        // With it the close sends RST.
        return SockRef::from(&socket).set_linger(Some(Duration::ZERO));
    }
    if tls.alpn_protocol().is_some() {
        shared.count_fault();
        if let Some(frames) = shared.fault.frames() {
            rustls::Stream::new(&mut tls, &mut socket).write_all(frames)?;
            return end(&mut socket);
        }
    }
    answer_all(shared, &mut tls, &mut socket)
}

/// What needs no handshake; true if that was all.
fn before_handshake(
    shared: &Shared,
    socket: &mut TcpStream,
    received: &[u8],
    number: u64,
) -> io::Result<bool> {
    match shared.fault {
        Fault::Drop if shared.fault.picks(number) => {}
        Fault::PlainHttp => socket.write_all(http::PLAIN)?,
        Fault::FalseResumption => {
            match false_resumption::greeting(
                &shared.script,
                &hello(received, false_resumption::OfferedSession::of)?,
            ) {
                Some(greeting) => {
                    shared.count_fault();
                    socket.write_all(&greeting)?;
                    // The client has the last word: an alert.
                    return Ok(true);
                }
                None => return Ok(false),
            }
        }
        _ => return Ok(false),
    }
    shared.count_fault();
    socket.shutdown(Shutdown::Write)?;
    Ok(true)
}

fn handshake(shared: &Shared, socket: &mut TcpStream, received: &[u8]) -> io::Result<ServerConnection> {
    let config = match shared.fault {
        Fault::HelloRetry => {
            let wanted = hello(received, |hello| shared.script.without_share(hello))?;
            if wanted.is_some() {
                shared.count_fault();
            }
            wanted.unwrap_or_else(|| shared.script.honest())
        }
        _ => shared.script.honest(),
    };
    if shared.fault == Fault::NeverResumes {
        shared.count_fault();
    }
    let mut tls = ServerConnection::new(config).expect("the configuration is complete");
    tls.read_tls(&mut &received[..])?;
    let processed = tls.process_new_packets();
    // Before the client has it: the next connection may come as soon as it has the session.
    if let Some(suite) = tls.negotiated_cipher_suite() {
        shared.script.agreed_on(u16::from(suite.suite()));
    }
    // Alerts and answers alike.
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    processed.map_err(io::Error::other)?;
    while tls.is_handshaking() || tls.wants_write() {
        tls.complete_io(socket)?;
    }
    shared.handshakes.fetch_add(1, Ordering::SeqCst);
    if tls.handshake_kind() == Some(HandshakeKind::Resumed) {
        shared.resumed.fetch_add(1, Ordering::SeqCst);
    }
    Ok(tls)
}

fn answer_all(shared: &Shared, tls: &mut ServerConnection, socket: &mut TcpStream) -> io::Result<()> {
    let mut received = Vec::new();
    let mut answered = 0;
    while let Some(request) = http::next_request(&mut rustls::Stream::new(tls, socket), &mut received)? {
        let late = match shared.fault {
            Fault::Late => answered == 0,
            Fault::AlwaysLate => true,
            _ => false,
        };
        if late {
            thread::sleep(LATENESS);
        }
        let (bytes, faulty) = http::answer(shared.fault, &request);
        if late || faulty {
            shared.count_fault();
        }
        // Counted before it is sent: a client that has the answer finds it counted.
        shared.answered.fetch_add(1, Ordering::SeqCst);
        rustls::Stream::new(tls, socket).write_all(&bytes)?;
        answered += 1;
        if shared.fault == Fault::Truncate {
            return end(socket);
        }
        if request.close {
            break;
        }
    }
    if shared.fault == Fault::StaysOpen {
        shared.count_fault();
        return read_to_end(socket);
    }
    if shared.fault == Fault::ClosesLate {
        shared.count_fault();
        thread::sleep(LATENESS);
    }
    tls.send_close_notify();
    tls.write_tls(socket)?;
    if shared.fault == Fault::AwaitsClose {
        shared.count_fault();
        await_close_notify(tls, socket)?;
    }
    end(socket)
}

/// Waits for the client's close_notify or FIN; too long a wait is an error, as every other is.
fn await_close_notify(tls: &mut ServerConnection, socket: &mut TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(CLOSE_WAIT))?;
    loop {
        let state = tls.process_new_packets().map_err(io::Error::other)?;
        if state.peer_has_closed() || tls.read_tls(socket)? == 0 {
            return Ok(());
        }
    }
}

/// Ends our side, and waits for the client's, so that the kernel sends no RST in place of what it has not delivered.
fn end(socket: &mut TcpStream) -> io::Result<()> {
    socket.shutdown(Shutdown::Write)?;
    read_to_end(socket)
}

/// The bytes up to the end of the ClientHello, and what came with them.
fn read_hello(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while received.is_empty() || matches!(assemble(&received, HELLO_LIMIT), Ok(Assembly::Incomplete)) {
        match socket.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(received)
}

/// What `of` makes of the ClientHello in `received`.
fn hello<T>(received: &[u8], of: impl FnOnce(&ClientHello<'_>) -> T) -> io::Result<T> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let Ok(Assembly::Complete(body)) = assemble(received, HELLO_LIMIT) else { return Err(invalid()) };
    Ok(of(&ClientHello::parse(&body).map_err(|_| invalid())?))
}

fn read_to_end(socket: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while socket.read(&mut buffer)? > 0 {}
    Ok(())
}
