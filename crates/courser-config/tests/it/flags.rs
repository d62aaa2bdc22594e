//! Flags, alone and over a file.

use std::fs;
use std::path::{Path, PathBuf};

use courser_config::{
    BackendAddress, Backends, ListenAddress, Loaded, Log, Problems, SendProxy, Suite, from_matches,
    serve_command,
};

use crate::snapshot::{hold, root};

fn serve(flags: &[&str]) -> Result<Loaded, Problems> {
    let words = ["serve"].iter().chain(flags);
    from_matches(&serve_command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{error}")))
}

/// A file of its own for one test, gone when it ends.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("courser-config-{}-{name}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn flags_alone_make_one_listener() {
    let config = serve(&[
        "--listen",
        "*:8443",
        "--listen",
        "[::1]:9443",
        "--backend",
        "app:80,10.0.0.1:80",
        "--send-proxy",
        "v2",
    ])
    .unwrap()
    .config;
    let [listener] = config.listeners.as_slice() else { panic!("one listener") };
    assert_eq!(listener.name, "default");
    assert_eq!(
        listener.listen,
        [ListenAddress::Any { port: 8443 }, ListenAddress::Ip("[::1]:9443".parse().unwrap())]
    );
    let app = BackendAddress::Name { host: "app".to_owned(), port: 80 };
    let ip = BackendAddress::Ip("10.0.0.1:80".parse().unwrap());
    assert_eq!(listener.default.backends, Backends::Own(vec![app, ip]));
    assert_eq!(listener.default.send_proxy, SendProxy::V2);
}

#[test]
fn a_certificate_is_one_file_or_two() {
    let config =
        serve(&["--backend", "app:80", "--cert", "a.pem", "--cert", "b.crt,key=b.key"]).unwrap().config;
    let [a, b] = config.listeners[0].default.certificates.as_slice() else { panic!("two") };
    assert_eq!((&*a.chain, &*a.key), (Path::new("a.pem"), Path::new("a.pem")));
    assert_eq!((&*b.chain, &*b.key), (Path::new("b.crt"), Path::new("b.key")));
    assert_eq!(b.origin.to_string(), "--cert b.crt,key=b.key");
}

#[test]
fn lists_are_split_at_commas() {
    let flags = [
        "--backend",
        "app:80",
        "--tls-versions",
        "1.3",
        "--suites",
        "TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384",
    ];
    let config = serve(&flags).unwrap().config;
    assert_eq!(
        config.listeners[0].default.suites,
        [Suite::TLS_AES_128_GCM_SHA256, Suite::TLS_AES_256_GCM_SHA384]
    );
}

#[test]
fn flags_of_the_process_and_of_sessions_go_over_the_file() {
    let file = File::new(
        "over",
        "workers = 2\nlog = 'json'\n[sessions]\nlifetime = '1h'\n[[listener]]\nbackend = 'app:80'\n",
    );
    let config = serve(&["--config", file.path(), "--workers", "4", "--no-tickets"]).unwrap().config;
    assert_eq!((config.process.workers, config.process.log), (Some(4), Log::Json));
    assert_eq!((config.sessions.tickets, config.sessions.lifetime.as_secs()), (false, 3600));
}

#[test]
fn a_wrong_flag_is_reported_with_what_is_wrong_in_the_file() {
    let file = File::new("both", "wrokers = 2\n[[listener]]\nbackend = 'app:80'\n");
    let problems = serve(&["--config", file.path(), "--workers", "many", "--listen", "*:1"]).unwrap_err();
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "`--listen` cannot be combined with `--config`",
            "expected a whole number, found `many`",
            "unknown key `wrokers`"
        ]
    );
}

#[test]
fn wrong_flags_get_their_messages() {
    let commands: &[&[&str]] = &[
        &[],
        &["--backend", ""],
        &["--backend", "app"],
        &["--backend", "http://app:80/"],
        &["--backend", "app:80", "--listen", "443"],
        &["--backend", "app:80", "--listen", "*:1,*:2,*:1"],
        &["--backend", "app:80", "--cert", "a.pem,key="],
        &["--backend", "app:80", "--suites", "TLS_AES_128_GCM_SHA265", "--groups", "P-265"],
        &["--backend", "app:80", "--idle-timeout", "5 parsecs", "--connect-timeout", "0s"],
        &["--backend", "app:80", "--session-cache-size", "64M", "--session-lifetime", "8d"],
        &[
            "--backend",
            "app:80",
            "--tickets-per-handshake",
            "17",
            "--unknown-name",
            "refused",
            "--log",
            "xml",
        ],
        &["--backend", "app:80", "--no-tickets", "--no-session-ids", "--profile", "old"],
    ];
    let shown: Vec<_> = commands
        .iter()
        .map(|flags| format!("$ courser serve {}\n{}", flags.join(" "), serve(flags).unwrap_err()))
        .collect();
    hold(&shown.join("\n"), &root().join("tests/fixtures/flags.txt"))
        .unwrap_or_else(|difference| panic!("{difference}"));
}

#[test]
fn the_help_names_every_flag_once() {
    serve_command().debug_assert();
    let shown = serve_command().term_width(110).render_help().to_string();
    hold(&shown, &root().join("tests/fixtures/help.txt")).unwrap_or_else(|difference| panic!("{difference}"));
}

#[test]
fn check_takes_what_serve_takes() {
    let long = |command: clap::Command| {
        command.get_arguments().map(|flag| flag.get_id().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(long(courser_config::check_command()), long(serve_command()));
}
