use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::body::BLOCK;
use super::*;

fn get() -> Request {
    Request { target: "/?s=5".to_owned(), host: "localhost".to_owned(), ..Request::default() }
}

/// The verdict on an answer that comes at once, and then the end of the connection.
fn verdict(expect: &Expect, received: &[u8]) -> Result<usize, WrongAnswer> {
    let mut answer = Answer::new(expect, Method::Get);
    let progress = answer.feed(received)?;
    if !progress.done {
        answer.end()?;
    }
    Ok(progress.consumed)
}

fn length(length: u64) -> Expect {
    Expect { length: Some(length), ..Expect::default() }
}

#[test]
fn a_request_is_rendered_for_both_kinds_of_connection() {
    let rendered = get().render().unwrap();
    let text = |then| String::from_utf8(rendered.bytes(then).to_vec()).unwrap();
    assert_eq!(text(Then::KeepAlive), "GET /?s=5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(text(Then::Close), "GET /?s=5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

#[test]
fn a_post_carries_its_length_even_if_that_is_nothing() {
    let post = |body| Request { method: Method::Post, body, ..get() }.render().unwrap();
    let ends = |rendered: &Rendered, end: &[u8]| rendered.bytes(Then::KeepAlive).ends_with(end);
    assert!(ends(&post(0), b"\r\nContent-Length: 0\r\n\r\n"));
    assert!(ends(&post(28), b"\r\nContent-Length: 28\r\n\r\nabcdefghijklmnopqrstuvwxyzab"));
}

#[test]
fn further_fields_stand_as_they_were_given() {
    let headers = vec![("User-Agent".to_owned(), "a b".to_owned()), ("X-Y".to_owned(), String::new())];
    let rendered = Request { headers, ..get() }.render().unwrap();
    assert!(rendered.bytes(Then::KeepAlive).ends_with(b"\r\nUser-Agent: a b\r\nX-Y: \r\n\r\n"));
}

#[test]
fn what_would_break_the_head_is_refused() {
    let target = |target: &str| Request { target: target.to_owned(), ..get() }.render().unwrap_err();
    for bad in ["", "x", "/a b", "/a\r\nX: y", "/\u{e4}"] {
        assert_eq!(target(bad), BadRequest::Target(bad.to_owned()));
    }
    let field = |name: &str, value: &str| {
        Request { headers: vec![(name.to_owned(), value.to_owned())], ..get() }.render().unwrap_err()
    };
    assert_eq!(field("a b", "c"), BadRequest::Field("a b".to_owned()));
    assert_eq!(field("a", "b\r\nc: d"), BadRequest::Field("a".to_owned()));
    assert_eq!(field("content-length", "3"), BadRequest::Ours("content-length".to_owned()));
    let host = Request { host: "a\n".to_owned(), ..get() };
    assert_eq!(host.render().unwrap_err(), BadRequest::Field("Host".to_owned()));
}

#[test]
fn http_2_has_no_fields_of_connections() {
    let with = |name: &str| {
        Request { headers: vec![(name.to_owned(), "x".to_owned())], ..get() }.render_with_http2().map(drop)
    };
    assert_eq!(with("keep-alive"), Err(BadRequest::OfConnection("keep-alive".to_owned())));
    assert_eq!(with("X-Name"), Ok(()));
}

#[test]
fn an_answer_ends_where_its_head_says() {
    let received = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcdeHTTP/1.1 200";
    assert_eq!(verdict(&length(5), received), Ok(received.len() - 12));
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\nHTTP";
    assert_eq!(verdict(&length(5), chunked), Ok(chunked.len() - 4));
    assert_eq!(verdict(&length(5), b"HTTP/1.0 200 OK\r\n\r\nabcde"), Ok(24));
}

#[test]
fn interim_answers_are_skipped() {
    let received =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 None\r\n\r\n";
    assert_eq!(verdict(&length(0), received), Ok(received.len()));
}

#[test]
fn the_answer_to_head_has_no_body() {
    let mut answer = Answer::new(&length(5), Method::Head);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(answer.feed(head), Ok(Progress { consumed: head.len(), done: true }));
}

#[test]
fn a_wrong_status_is_a_failure() {
    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    let expect = |status| Expect { status, ..Expect::default() };
    assert_eq!(verdict(&Expect::default(), busy), Err(WrongAnswer::Status(503)));
    assert_eq!(verdict(&expect(ExpectedStatus::Exactly(200)), busy), Err(WrongAnswer::Status(503)));
    assert_eq!(verdict(&expect(ExpectedStatus::Exactly(503)), busy), Ok(busy.len()));
    assert_eq!(verdict(&expect(ExpectedStatus::Any), busy), Ok(busy.len()));
    let upgrade = b"HTTP/1.1 101 Switching\r\n\r\n";
    assert_eq!(verdict(&Expect::default(), upgrade), Err(WrongAnswer::Status(101)));
}

#[test]
fn a_wrong_length_is_a_failure_however_it_is_framed() {
    let wrong = |received| Err(WrongAnswer::Length { expected: 5, received });
    assert_eq!(verdict(&length(5), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), wrong(9));
    assert_eq!(verdict(&length(5), b"HTTP/1.1 200 OK\r\n\r\nabcd"), wrong(4));
    assert_eq!(verdict(&length(5), b"HTTP/1.1 200 OK\r\n\r\nabcdefgh"), wrong(6));
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(verdict(&length(5), chunked), wrong(3));
}

#[test]
fn an_answer_that_stops_short_is_truncated() {
    let cut = |received, announced| Err(WrongAnswer::Truncated { received, announced });
    assert_eq!(verdict(&Expect::default(), b""), Err(WrongAnswer::Nothing));
    assert_eq!(verdict(&Expect::default(), b"HTTP/1.1 20"), cut(0, None));
    assert_eq!(
        verdict(&Expect::default(), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
        cut(2, Some(5))
    );
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
    assert_eq!(verdict(&Expect::default(), chunked), cut(3, None));
}

#[test]
fn wrong_bytes_of_the_right_length_are_a_failure() {
    let expect = Expect { body: BodyCheck::Sha256(Sha256::digest(b"abcde").into()), ..Expect::default() };
    let answer = |text: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{text}").into_bytes();
    assert!(verdict(&expect, &answer("abcde")).is_ok());
    assert_eq!(verdict(&expect, &answer("abcdf")), Err(WrongAnswer::Hash));

    let first = Expect { body: BodyCheck::LikeTheFirst(Arc::new(OnceLock::new())), ..Expect::default() };
    assert!(verdict(&first, &answer("12345")).is_ok());
    assert!(verdict(&first.clone(), &answer("12345")).is_ok());
    assert_eq!(verdict(&first.clone(), &answer("12346")), Err(WrongAnswer::Hash));
}

#[test]
fn what_is_not_http_is_malformed() {
    let cases: [&[u8]; 9] = [
        b"SSH-2.0-OpenSSH\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
    ];
    for case in cases {
        let verdict = verdict(&Expect::default(), case);
        let shown = String::from_utf8_lossy(case);
        assert!(matches!(verdict, Err(WrongAnswer::Malformed(_))), "{shown}: {verdict:?}");
    }
}

#[test]
fn what_never_ends_is_cut_off() {
    let endless = |start: &str| [start.as_bytes(), &vec![b'x'; HEAD_LIMIT]].concat();
    let head = endless("HTTP/1.1 200 OK\r\nX: ");
    assert_eq!(verdict(&Expect::default(), &head), Err(WrongAnswer::Malformed("endless head")));
    let line = endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;");
    assert!(matches!(verdict(&Expect::default(), &line), Err(WrongAnswer::Malformed(_))));
    let fields =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}", "a: b\r\n".repeat(2000));
    assert!(matches!(verdict(&Expect::default(), fields.as_bytes()), Err(WrongAnswer::Malformed(_))));
}

#[test]
fn a_reader_is_used_again_and_says_when_the_connection_ends() {
    let mut answer = Answer::new(&Expect::default(), Method::Get);
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", false),
    ];
    for (received, closes) in cases {
        assert!(answer.feed(received.as_bytes()).unwrap().done, "{received}");
        assert_eq!((answer.status(), answer.closes()), (Some(200), closes), "{received}");
        answer.restart();
    }
}

#[test]
fn bodies_go_on_from_block_to_block() {
    assert_eq!(body(0), b"");
    assert!(body(BLOCK * 2 + 3).iter().zip((b'a'..=b'z').cycle()).all(|(got, wanted)| *got == wanted));
}
