//! Suites whose clients ask for an application protocol: nginx's log is the judge of what was spoken.

use std::fs;

use courser_record::lab::CellState;

use crate::mini::{A_SECOND, Mini, SUITE, cell, outcome};

/// The suite of one case, with `alpn` in it.
fn asking(alpn: &str, targets: &str) -> Mini {
    let text = SUITE.replace("clients = 8", &format!("clients = 8\nalpn = {alpn}"));
    Mini::with(&text.replace(r#"["nginx", "haproxy"]"#, targets))
}

/// nginx as the suite has it, but for `from`, in a target file of its own.
fn nginx_with(mini: &Mini, name: &str, from: &str, to: &str) {
    let shown = mini.finished(&["targets", "--show", "nginx"]).stdout;
    assert!(shown.contains(from), "{shown}");
    let own = shown.replace(r#"name = "nginx""#, &format!("name = {name:?}"));
    mini.write(&format!("{name}.toml"), own.replace(from, to));
}

#[test]
fn a_case_with_http_2_is_measured_as_http_2_alone() {
    let Some(_) = Mini::of(&["nginx", "haproxy", "caddy"]) else { return };
    let mini = asking("\"h2\"", r#"["logging.toml", "haproxy", "caddy"]"#);
    let log = mini.join("protocols.log");
    let to = format!("log_format protocols $server_protocol; access_log {} protocols;", log.display());
    nginx_with(&mini, "logging", "access_log off;", &to);
    mini.measured(&[&A_SECOND[..], &["--no-control"]].concat());
    let lab = mini.record();
    for target in ["logging", "haproxy", "caddy"] {
        let cell = cell(&lab, target);
        let verified = cell.verified.as_ref().unwrap_or_else(|| panic!("{target}: {:?}", cell.reason));
        assert_eq!((verified.alpn.as_deref(), verified.body_bytes), (Some("h2"), Some(1024)), "{target}");
        let window = &cell.blocks[0].windows[0];
        assert!(window.succeeded > 0 && window.failed == 0, "{target}: {window:?}");
    }
    assert!(lab.cases[0].asked.join("\n").contains("--alpn h2"), "{:?}", lab.cases[0].asked);
    let logged = fs::read_to_string(log).unwrap();
    let measured = cell(&lab, "logging").blocks[0].windows[0].succeeded;
    assert!(logged.lines().count() as u64 >= measured, "{measured} were counted");
    assert!(logged.lines().all(|line| line == "HTTP/2.0"), "another protocol was spoken");
}

#[test]
fn who_does_not_speak_it_is_left_out_with_the_reason_and_has_no_figure() {
    let Some(_) = Mini::of(&["nginx", "nginx-stream", "stunnel"]) else { return };
    let mini = asking("\"h2\"", r#"["nginx-stream", "stunnel", "lying.toml"]"#);
    // It is set up for it, says its file.
    nginx_with(&mini, "lying", r#"" http2" if h2"#, r#""" if h2"#);
    mini.run(&["--no-control"]);
    let lab = mini.record();
    for (target, state, why) in [
        ("nginx-stream", CellState::Cannot, "the origin behind it speaks HTTP/1.1 alone"),
        ("stunnel", CellState::Cannot, "not set up to agree on h2"),
        ("lying", CellState::Failed, "NoApplicationProtocol"),
    ] {
        let (found, reason) = outcome(&lab, target);
        assert!(found == state && reason.contains(why), "{target}: {found:?}: {reason}");
        assert!(cell(&lab, target).blocks.is_empty(), "{target} has a figure");
    }
}

#[test]
fn handshakes_need_nobody_who_takes_requests_apart() {
    let Some(_) = Mini::of(&["nginx-stream", "hitch", "courser"]) else { return };
    let mini = asking("\"h2\"", r#"["courser", "nginx-stream", "hitch"]"#);
    let suite = fs::read_to_string(mini.join("mini.toml")).unwrap();
    mini.write("mini.toml", suite.replace("object = \"1 KB\"\n", ""));
    mini.measured(&["--no-control"]);
    for target in ["courser", "nginx-stream", "hitch"] {
        let lab = mini.record();
        let verified = cell(&lab, target).verified.as_ref();
        assert_eq!(verified.and_then(|seen| seen.alpn.as_deref()), Some("h2"), "{:?}", outcome(&lab, target));
    }
}

#[test]
fn a_protocol_without_tls_is_refused_before_anything_is_measured() {
    let suite = asking("\"h2\"", r#"["nginx"]"#);
    let text = fs::read_to_string(suite.join("mini.toml")).unwrap();
    suite.write("mini.toml", text.replace("version = \"1.3\"", "version = \"clear\""));
    let run = suite.run(&[]);
    assert!(run.status.code() == Some(2) && run.stderr.contains("h2 is agreed on within TLS"), "{run:?}");
    let unknown = asking("\"h3\"", r#"["nginx"]"#).run(&[]);
    assert!(unknown.stderr.contains("\"h3\" is no application protocol"), "{unknown:?}");
}
