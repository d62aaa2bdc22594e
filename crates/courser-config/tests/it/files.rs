//! Configuration files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use courser_config::{
    BackendAddress, BackendTls, Backends, Group, ListenAddress, Loaded, Located, Named, OnTruncation,
    Problem, Problems, Revocation, SendProxy, Suite, TlsVersion, UnknownName, Verify, from_toml, fuzz, load,
};
use proptest::prelude::*;

use crate::snapshot::{fixtures, hold};

/// Reads a fixture under the name it would have for somebody in its folder.
fn read(path: &Path) -> Result<Loaded, Problems> {
    from_toml(&fs::read_to_string(path).unwrap(), Path::new(path.file_name().unwrap()))
}

fn listener(rest: &str) -> Result<Loaded, Problems> {
    from_toml(&format!("[[listener]]\n{rest}\n"), Path::new("/etc/courser/courser.toml"))
}

#[test]
fn each_wrong_file_gets_its_messages() {
    let mut differences = Vec::new();
    for path in fixtures("invalid", "toml") {
        let problems = read(&path).expect_err(&path.display().to_string());
        differences.extend(hold(&problems.render(false), &path.with_extension("txt")).err());
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn each_right_file_gives_its_settings() {
    let mut differences = Vec::new();
    for path in fixtures("valid", "toml") {
        let loaded = read(&path).unwrap_or_else(|problems| panic!("{problems}"));
        let shown = format!("{}{:#?}\n", loaded.warnings, Settings(&loaded));
        differences.extend(hold(&shown, &path.with_extension("txt")).err());
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// A configuration without the texts that origins carry.
struct Settings<'a>(&'a Loaded);

impl std::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let config = &self.0.config;
        f.debug_list().entry(&config.process).entry(&config.sessions).entry(&config.fleet).finish()?;
        for pool in &config.pools {
            write!(f, "\npool {}: {:?}, {:?}", pool.name, pool.balance, pool.affinity)?;
            write_tls(f, pool.tls.as_ref())?;
        }
        for listener in &config.listeners {
            write!(f, "\nlistener {}: {:?}", listener.name, listener.listen)?;
            write!(f, "\n  sessions of {:?}", listener.session_scope)?;
            write!(
                f,
                "\n  {:?}, backlog {}, {:?}",
                listener.unknown_name, listener.backlog, listener.handshake_timeout
            )?;
            for rule in &listener.routes {
                write!(f, "\n  {rule}, {:?}", rule.action)?;
            }
            for host in [&listener.default].into_iter().chain(&listener.hosts) {
                write!(f, "\n  host {}: {:?}", host.name, host.names)?;
                for cert in &host.certificates {
                    write!(
                        f,
                        "\n    {} + {} from {}",
                        cert.chain.display(),
                        cert.key.display(),
                        cert.origin
                    )?;
                }
                for staple in &host.staples {
                    write!(f, "\n    staple {} from {}", staple.value.display(), staple.origin)?;
                }
                write!(f, "\n    {:?}, {:?}", host.backends, host.send_proxy)?;
                write_tls(f, host.backend_tls.as_ref())?;
                write!(f, "\n    client certificates {:?}", host.client_auth)?;
                if let Some(lists) = &host.client_crl {
                    write_lists(f, &lists.value)?;
                }
                for ca in &host.client_ca {
                    write!(f, "\n    {} from {}", ca.value.display(), ca.origin)?;
                }
                write!(
                    f,
                    "\n    {:?}, {:?}, {:?}, {:?}",
                    host.versions, host.suites, host.groups, host.alpn
                )?;
                write!(
                    f,
                    "\n    {:?}, {:?}, {:?}",
                    host.connect_timeout, host.idle_timeout, host.on_truncation
                )?;
            }
        }
        Ok(())
    }
}

fn write_tls(f: &mut std::fmt::Formatter<'_>, tls: Option<&Located<BackendTls>>) -> std::fmt::Result {
    let Some(Located { value: tls, origin }) = tls else { return Ok(()) };
    write!(f, "\n    TLS from {origin}: ")?;
    match &tls.verify {
        Verify::Files(files) => {
            f.debug_list().entries(files.iter().map(|file| file.value.display())).finish()?;
        }
        other => write!(f, "{other:?}")?,
    }
    write!(f, ", name {:?}", tls.server_name)?;
    if let Some(cert) = &tls.cert {
        write!(f, ", shows {} + {}", cert.chain.display(), cert.key.display())?;
    }
    tls.crl.as_ref().map_or(Ok(()), |lists| write_lists(f, lists))
}

fn write_lists(f: &mut std::fmt::Formatter<'_>, lists: &Revocation) -> std::fmt::Result {
    let files: Vec<_> = lists.files.iter().map(|file| file.value.display().to_string()).collect();
    let (depth, unknown, expired) = (lists.depth, lists.unknown, lists.expired);
    write!(f, "\n    revoked by {files:?}, {depth:?}, unknown {unknown:?}, expired {expired:?}")
}

#[test]
fn the_smallest_file_has_safe_defaults() {
    let config = listener("backend = '127.0.0.1:80'").unwrap().config;
    assert_eq!(config.process.workers, None);
    assert_eq!(config.sessions.cache_size, 64 << 20);
    let [listener] = config.listeners.as_slice() else { panic!("one listener") };
    assert_eq!(
        (listener.name.as_str(), &listener.listen),
        ("*:443", &vec![ListenAddress::Any { port: 443 }])
    );
    assert_eq!(
        (listener.unknown_name, listener.handshake_timeout),
        (UnknownName::Default, Duration::from_secs(10))
    );
    let host = &listener.default;
    assert_eq!(host.versions, TlsVersion::ALL);
    assert_eq!((host.suites.as_slice(), host.groups.as_slice()), (Suite::ALL, Group::ALL));
    assert_eq!((host.send_proxy, host.on_truncation), (SendProxy::Off, OnTruncation::Fin));
    assert!(host.certificates.is_empty() && host.alpn.is_empty());
}

#[test]
fn relative_paths_start_at_the_folder_of_the_file() {
    let config = listener("cert = ['a.pem', '/b.pem']\nbackend = ['unix:run/app.sock']").unwrap().config;
    let host = &config.listeners[0].default;
    assert_eq!(*host.certificates[0].chain, *Path::new("/etc/courser/a.pem"));
    assert_eq!(*host.certificates[1].key, *Path::new("/b.pem"));
    assert_eq!(host.backends, Backends::Own(vec![BackendAddress::Unix("/etc/courser/run/app.sock".into())]));
}

#[test]
fn a_later_problem_points_at_the_certificate_it_is_about() {
    let config = listener("backend = 'app:80'\ncert = [\n  'ok.pem',\n  'bad.pem',\n]").unwrap().config;
    let origin = &config.listeners[0].default.certificates[1].origin;
    assert_eq!(origin.to_string(), "/etc/courser/courser.toml:5:3");
    let problem = Problem::at(origin, "cannot read `bad.pem`", Some("does it exist?".to_owned()));
    let shown = Problems::from(problem).render(false);
    for line in
        ["error: cannot read `bad.pem`", "courser.toml:5:3", "'bad.pem'", "^^^^^^^^^", "help: does it exist?"]
    {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
}

#[test]
fn colour_comes_only_when_asked_for() {
    let problems = listener("backend = 1").unwrap_err();
    assert!(problems.render(true).contains("\x1b["));
    assert!(!problems.render(false).contains('\x1b'));
}

#[test]
fn what_was_written_cannot_drive_the_terminal() {
    let problems = listener("backend = \"app:80\"\nlisten = \"\\u001b[2J:1\"").unwrap_err();
    assert!(!problems.render(false).contains('\x1b'), "{:?}", problems.render(false));
    let problems = listener("backend = \x1b[2J").unwrap_err();
    assert!(!problems.render(false).contains('\x1b'), "{:?}", problems.render(false));
}

#[test]
fn openssl_names_are_understood() {
    let text = "backend = 'app:80'\nversions = ['TLSv1.2']\nsuites = ['ecdhe-rsa-aes128-gcm-sha256']\n\
                groups = ['prime256v1', 'secp384r1']";
    let config = listener(text).unwrap().config;
    let host = &config.listeners[0].default;
    assert_eq!(host.suites, [Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]);
    assert_eq!(host.groups, [Group::P256, Group::P384]);
}

#[test]
fn a_hosts_profile_starts_afresh() {
    let text =
        "backend = 'app:80'\nversions = ['1.2']\n[[listener.host]]\nnames = 'a.example'\nprofile = 'modern'";
    let config = listener(text).unwrap().config;
    assert_eq!(config.listeners[0].default.versions, [TlsVersion::Tls12]);
    assert_eq!(config.listeners[0].hosts[0].versions, [TlsVersion::Tls13]);
}

#[test]
fn a_file_that_is_not_there_is_a_problem() {
    let problems = load(Path::new("/nonexistent/courser.toml")).unwrap_err();
    assert!(
        problems.to_string().starts_with("error: cannot read `/nonexistent/courser.toml`: "),
        "{problems}"
    );
}

/// Lines that are often nearly right, in any order, so that more than the parser's first complaint is reached.
fn nearly_right() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "workers", "listen", "cert", "backend", "suites", "lifetime", "names", "naem",
    ]);
    let value = prop::sample::select(vec![
        "1",
        "-1",
        "1.5",
        "true",
        "''",
        "[]",
        "['*:1', '*:1']",
        "'9d'",
        "{ key = 'ä' }",
        "[[1]]",
        "1979-05-27",
    ]);
    let table =
        prop::sample::select(vec!["[sessions]", "[[listener]]", "[[listener.host]]", "[listener]", "# ü"]);
    let line = prop_oneof![
        3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => table.prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_panics(text in prop_oneof!["\\PC*", "(?s).{0,200}", nearly_right()]) {
        fuzz(&text);
    }

    #[test]
    fn every_error_in_a_file_has_a_place(text in nearly_right()) {
        if let Err(problems) = from_toml(&text, Path::new("x.toml")) {
            prop_assert!(problems.has_errors());
            for problem in problems.iter().filter(|problem| problem.severity == courser_config::Severity::Error) {
                prop_assert!(problem.origin.is_some(), "{problems}");
            }
        }
    }
}
