//! As much HTTP/1.1 as the origin needs: a request's head, its content length, and answers of a wanted size.

use std::{io, sync::LazyLock};

use courser_load::http::body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A multiple of 26, so that the alphabet goes on from one block to the next.
const BLOCK: usize = 26 * 2520;
static ALPHABET: LazyLock<Vec<u8>> = LazyLock::new(|| body(BLOCK));

/// A request's head larger than this is refused.
const HEAD_LIMIT: usize = 64 * 1024;

/// Answers requests until the peer or a request's `Connection: close` ends it.
pub(super) async fn serve(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    mut received: Vec<u8>,
    header: &[u8],
) -> io::Result<()> {
    while let Some(request) = next_request(stream, &mut received).await? {
        discard(stream, &mut received, request.content_length).await?;
        answer(stream, &request, header).await?;
        if request.close {
            return stream.shutdown().await;
        }
    }
    Ok(())
}

/// What counts in a request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    target: String,
    content_length: usize,
    close: bool,
}

async fn next_request(
    stream: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    loop {
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let request = parse(&received[..end]);
            received.drain(..end + 4);
            return request.map(Some);
        }
        if received.len() > HEAD_LIMIT {
            return Err(invalid("head of the request is too long"));
        }
        if stream.read_buf(received).await? == 0 {
            return if received.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    }
}

fn parse(head: &[u8]) -> io::Result<Request> {
    let head = std::str::from_utf8(head).map_err(|_| invalid("head of the request is not text"))?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(_method), Some(target), Some(version)) = (first.next(), first.next(), first.next()) else {
        return Err(invalid("no request line"));
    };
    let mut request = Request { target: target.to_owned(), content_length: 0, close: version == "HTTP/1.0" };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                request.content_length = value.trim().parse().map_err(|_| invalid("bad content length"))?;
            }
            "connection" => request.close = value.trim().eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    Ok(request)
}

async fn discard(
    stream: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
    mut left: usize,
) -> io::Result<()> {
    loop {
        let here = left.min(received.len());
        received.drain(..here);
        left -= here;
        if left == 0 {
            return Ok(());
        }
        received.reserve(left.min(BLOCK));
        if stream.read_buf(received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), request: &Request, header: &[u8]) -> io::Result<()> {
    if request.target == "/proxy" {
        return send(stream, head(request, header.len()), header).await;
    }
    if request.content_length > 0 {
        let text = format!("received {}\n", request.content_length);
        return send(stream, head(request, text.len()), text.as_bytes()).await;
    }
    let size = wanted_size(&request.target);
    let first = size.min(BLOCK);
    send(stream, head(request, size), &ALPHABET[..first]).await?;
    let mut left = size - first;
    while left > 0 {
        let count = left.min(BLOCK);
        stream.write_all(&ALPHABET[..count]).await?;
        left -= count;
    }
    Ok(())
}

fn head(request: &Request, length: usize) -> Vec<u8> {
    let connection = if request.close { "Connection: close\r\n" } else { "" };
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n{connection}\r\n")
        .into_bytes()
}

/// Head and body in one write: a small answer is one segment, as a real server's is.
async fn send(stream: &mut (impl AsyncWrite + Unpin), mut head: Vec<u8>, body: &[u8]) -> io::Result<()> {
    head.extend_from_slice(body);
    stream.write_all(&head).await
}

/// `/?s=20k`: number of bytes, `k` and `m` for KiB and MiB; without it, 1 KiB.
pub(crate) fn wanted_size(target: &str) -> usize {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let Some(text) = query.split('&').find_map(|pair| pair.strip_prefix("s=")) else { return 1024 };
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1024),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1024 * 1024),
        _ => (text, 1),
    };
    digits.parse::<usize>().unwrap_or(0).saturating_mul(unit)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_bytes_or_has_a_unit() {
        assert_eq!(wanted_size("/?s=20k"), 20 * 1024);
        assert_eq!(wanted_size("/x?a=b&s=1m"), 1024 * 1024);
        assert_eq!(wanted_size("/?s=0"), 0);
        assert_eq!(wanted_size("/"), 1024);
    }

    #[test]
    fn a_request_says_how_it_ends() {
        let request = parse(b"POST /a HTTP/1.1\r\nContent-Length: 12\r\nconnection: Close").unwrap();
        assert_eq!(request, Request { target: "/a".into(), content_length: 12, close: true });
        assert!(parse(b"GET / HTTP/1.0").unwrap().close);
        assert!(!parse(b"GET / HTTP/1.1\r\nHost: a").unwrap().close);
    }
}
