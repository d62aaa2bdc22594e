//! Where clients arrive: every kind of address, sockets from systemd, several listeners, and addresses that are taken.

use std::{
    collections::HashSet,
    net::{TcpListener, TcpStream},
    os::unix::net::UnixListener,
    process::Command,
};

use courser_testkit::{OriginServer, Process, client::Version, free_port, require};

use crate::stage::{Stage, content, courser, only_line, run, run_courser};

#[test]
fn ipv4_is_served() {
    served_on("127.0.0.1:0", &["127.0.0.1"]);
}

#[test]
fn ipv6_is_served() {
    served_on("[::1]:0", &["::1"]);
}

#[test]
fn a_star_serves_ipv4_and_ipv6() {
    served_on("*:0", &["127.0.0.1", "::1"]);
}

#[test]
fn an_ipv4_client_of_a_star_is_logged_as_ipv4() {
    let stage = Stage::new();
    let courser = stage.courser().listen("*:0").backend("127.0.0.1:9").start();
    let client = TcpStream::connect(("127.0.0.1", courser.address().port())).unwrap();
    let here = client.local_addr().unwrap().to_string();
    drop(client);
    assert_eq!(only_line(&courser)["client"], here);
}

#[test]
fn the_unspecified_ipv6_address_is_ipv6_alone() {
    let stage = Stage::new();
    let courser = stage.courser().listen("[::]:0").backend("127.0.0.1:9").start();
    let port = courser.address().port();
    assert!(TcpStream::connect(("::1", port)).is_ok());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_unix_socket_is_served() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let path = stage.folder.join("front.sock");
    let listen = format!("unix:{}", path.display());
    let courser = stage.courser().listen(&listen).backend(origin.backend()).start();
    assert_eq!(courser.addresses(), [listen]);
    fetched_over(&stage, "--unix-socket", path.to_str().unwrap());
    assert_eq!(courser.connections_json(1)[0]["client"], "unix");
}

#[test]
fn a_unix_socket_left_behind_is_replaced_and_one_in_use_is_not() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let path = stage.folder.join("front.sock");
    let listen = format!("unix:{}", path.display());
    drop(UnixListener::bind(&path).unwrap());
    let _courser = stage.courser().listen(&listen).backend(origin.backend()).start();
    fetched_over(&stage, "--unix-socket", path.to_str().unwrap());
    let second = stage.courser().listen(&listen).backend(origin.backend()).launch().finish();
    assert!(second.stderr.contains("Address already in use"), "{}", second.stderr);
    fetched_over(&stage, "--unix-socket", path.to_str().unwrap());
}

#[test]
fn an_abstract_socket_is_served() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let name = format!("courser-test-front-{}", std::process::id());
    let _courser = stage.courser().listen(format!("abstract:{name}")).backend(origin.backend()).start();
    fetched_over(&stage, "--abstract-unix-socket", &name);
}

#[test]
fn a_socket_from_systemd_is_served() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let port = free_port();
    let Some(_courser) = activated(&stage, &origin, &["-l", &format!("127.0.0.1:{port}")], "systemd") else {
        return;
    };
    // This connection is what starts the program.
    content(run(&mut curl(&stage, port)));
}

#[test]
fn every_socket_from_systemd_is_served() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let ports = [free_port(), free_port()];
    let sockets = ports.map(|port| format!("127.0.0.1:{port}"));
    let Some(_courser) = activated(&stage, &origin, &["-l", &sockets[0], "-l", &sockets[1]], "systemd")
    else {
        return;
    };
    for port in ports {
        content(run(&mut curl(&stage, port)));
    }
}

#[test]
fn sockets_from_systemd_are_told_apart_by_name() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let (api, web) = (free_port(), free_port());
    let sockets = [format!("127.0.0.1:{api}"), format!("127.0.0.1:{web}")];
    let arguments = ["-l", &sockets[0], "-l", &sockets[1], "--fdname", "api:web"];
    let Some(courser) = activated(&stage, &origin, &arguments, "systemd:web") else { return };
    content(run(&mut curl(&stage, web)));
    assert!(courser.wait_stderr_line("listening on").contains(&sockets[1]));
}

#[test]
fn a_name_that_systemd_has_not_passed_is_an_error() {
    let refused = run_courser(&["serve", "--backend", "127.0.0.1:9", "--listen", "systemd:web"]);
    assert_eq!(refused.status.code(), Some(1));
    let expected = "cannot listen on systemd:web: systemd has passed no such socket";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
}

#[test]
fn one_file_may_have_several_listeners() {
    let stage = Stage::new();
    let (first, second) = (OriginServer::http(), OriginServer::http());
    let file = stage.folder.write(
        "courser.toml",
        format!(
            "log = 'json'
[[listener]]
name = 'first'
listen = ['127.0.0.1:0', '[::1]:0']
cert = '{certificate}'
backend = '{first}'
[[listener]]
name = 'second'
listen = '127.0.0.1:0'
cert = '{certificate}'
backend = '{second}'
",
            certificate = stage.certificate.display(),
            first = first.backend(),
            second = second.backend(),
        ),
    );
    let courser = courser().config(&file).sockets(3).start();
    for address in courser.addresses() {
        let address: std::net::SocketAddr = address.parse().unwrap();
        content(run(&mut curl_to(&stage, &address.ip().to_string(), address.port())));
    }
    assert_eq!((first.accepted(), second.accepted()), (2, 1));
    let lines = courser.connections_json(3);
    let listeners: Vec<&str> = lines.iter().filter_map(|line| line["listener"].as_str()).collect();
    assert_eq!(listeners, ["first", "first", "second"]);
}

#[test]
fn an_address_in_use_is_a_clear_error() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let refused = run_courser(&["serve", "--backend", "127.0.0.1:9", "--listen", &address]);
    assert_eq!(refused.status.code(), Some(1));
    let expected = format!("error: cannot listen on {address}: Address already in use");
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
}

#[test]
fn connections_spread_over_all_workers() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.courser_of(2).backend(origin.backend()).start();
    let client = stage.client(&courser, Version::Tls13);
    // By chance one of two workers gets none of them once in 2^63 runs.
    for _ in 0..64 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    let lines = courser.connections_json(64);
    let workers: HashSet<u64> = lines.iter().filter_map(|line| line["worker"].as_u64()).collect();
    assert_eq!(workers, HashSet::from([0, 1]));
    let ids: HashSet<&str> = lines.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!(ids.len(), 64, "every connection has a name of its own");
}

#[test]
fn the_start_says_what_listens_where_with_which_certificate() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    let line = courser.wait_stderr_line("certificates");
    for part in ["listener default", "EC256 for localhost", "127.0.0.1:9"] {
        assert!(line.contains(part), "{line}");
    }
}

/// Asserts that a page comes through on each of `hosts`.
#[track_caller]
fn served_on(listen: &str, hosts: &[&str]) {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.courser().listen(listen).backend(origin.backend()).start();
    for host in hosts {
        content(run(&mut curl_to(&stage, host, courser.address().port())));
    }
    assert_eq!(origin.accepted(), hosts.len() as u64);
}

/// Asserts that curl gets a page over a unix socket.
#[track_caller]
fn fetched_over(stage: &Stage, flag: &str, socket: &str) {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--cacert"]).arg(&stage.root).args([
        flag,
        socket,
        "https://localhost/",
    ]);
    content(run(&mut curl));
}

fn curl(stage: &Stage, port: u16) -> Command {
    curl_to(stage, "127.0.0.1", port)
}

fn curl_to(stage: &Stage, host: &str, port: u16) -> Command {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "30", "--cacert"]).arg(&stage.root);
    curl.arg(format!("https://{host}:{port}/"));
    curl
}

/// The terminator as `systemd-socket-activate` starts it once somebody connects.
fn activated(stage: &Stage, origin: &OriginServer, sockets: &[&str], listen: &str) -> Option<Process> {
    let mut command = Command::new(require("systemd-socket-activate")?);
    command.args(sockets).arg(env!("CARGO_BIN_EXE_courser"));
    command
        .args(["serve", "--listen", listen, "--backend", origin.backend(), "--cert"])
        .arg(&stage.certificate);
    let process = Process::start(&mut command);
    process.wait_stderr_line("Listening on");
    Some(process)
}
