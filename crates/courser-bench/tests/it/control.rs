//! Control blocks: whether a figure is the lean client's doing.

use std::fs;

use courser_record::lab::{CellState, Lab};
use courser_testkit::require;

use crate::mini::{Mini, SUITE, cell, has_measured};

/// A server that knows lean clients by their key shares, which come from a pool, and works for the others alone.
const LIAR: &str = r#"
name = "liar"
title = "A liar"
note = "It does less for clients that it has seen before."
arguments = ["{{ folder }}/liar.py"]

[program]
names = ["python3"]
version = { arguments = ["--version"], after = ["Python "] }

[files]
"liar.py" = """
import hashlib, socket, ssl

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("{{ tls.certificates[0].combined }}")
context.num_tickets = 0
listener = socket.create_server(("127.0.0.1", {{ port }}), backlog=128)
known = set()
while True:
    client, _ = listener.accept()
    client.settimeout(2)
    try:
        share = client.recv(4096, socket.MSG_PEEK).partition(bytes([0, 0x1d, 0, 0x20]))[2][:32]
        if share not in known and len(known) > 40:
            hashlib.pbkdf2_hmac("sha256", share, share, 5000)
        known.add(share)
        with context.wrap_socket(client, server_side=True) as tls:
            tls.recv(4096)
            tls.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 1024\\r\\nConnection: close\\r\\n\\r\\n" + bytes(1024))
            tls.unwrap().close()
    except OSError:
        client.close()
"""
"#;

/// Ratio and finding of the only case.
fn ratio(lab: &Lab) -> f64 {
    let control = lab.cases[0].control.expect("there is a control");
    assert_eq!((control.targets, control.low, control.high), (1, control.ratio, control.ratio));
    control.ratio
}

#[test]
fn a_server_that_does_less_for_lean_clients_is_found() {
    if require("python3").is_none() {
        return;
    }
    let mini = Mini::with(&SUITE.replace("key =", "exchange = \"X25519\"\nkey ="));
    mini.write("liar.toml", LIAR);
    // Each block draws from the pool anew: from the second on the server has seen its shares, however few there were.
    let run = mini.run(&["liar.toml", "--rounds", "5", "--seconds", "400ms"]);
    has_measured(&run, &[]);
    let lab = mini.record();
    assert!(ratio(&lab) > 1.3, "{:?}", lab.cases[0].control);
    let liar = cell(&lab, "liar");
    let text =
        liar.findings.iter().find(|finding| finding.id == "client-engine").map(|finding| &finding.text);
    assert!(
        text.is_some_and(|text| text.contains("times the processor time per connection")),
        "{:?}",
        liar.findings
    );
    // It is beside the blocks that are compared, and in none of them.
    assert_eq!((liar.blocks.len(), liar.control.as_ref().map(|block| block.round)), (5, Some(5)));
    let page = fs::read_to_string(mini.join("record.html")).unwrap();
    for text in [&run.stdout, &page] {
        assert!(text.contains("With a client that does all the work and verifies, the servers"), "{text}");
        assert!(text.contains("real / lean client"), "{text}");
    }
}

#[test]
fn each_case_has_a_control_unless_it_is_left_out() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    has_measured(&mini.run(&[]), &[]);
    let lab = mini.record();
    assert!((0.3..3.0).contains(&ratio(&lab)), "{:?}", lab.cases[0].control);
    for without in [&["--no-control"][..], &["--quick"]] {
        fs::remove_file(mini.join("record.json")).unwrap();
        has_measured(&mini.run(without), &[]);
        let lab = mini.record();
        assert_eq!(lab.cases[0].control, None, "{without:?}");
        assert!(lab.cells.iter().all(|cell| cell.state == CellState::Done && cell.control.is_none()));
    }
}
