//! haproxy.cfg, versions 2.x and 3.x: front ends that terminate TLS in mode tcp, and their servers.

mod bind;
mod read;
mod servers;

use crate::document::{Document, Listener, Table, texts};
use crate::remark::Remarks;
use crate::service::{Offer, Setting};
use crate::{Files, Import, Malformed};

use bind::Bind;
use read::{Line, Section};

pub(crate) fn import(text: &str, files: &dyn Files) -> Result<Import, Malformed> {
    let sections = read::sections(text)?;
    let mut import = Importer {
        files,
        global: Global::default(),
        remarks: Remarks::default(),
        document: Document::default(),
    };
    for section in sections.iter().filter(|section| section.kind == "global") {
        import.global(section);
    }
    for section in sections.iter().filter(|section| matches!(section.kind.as_str(), "frontend" | "listen")) {
        import.frontend(section, &sections);
    }
    for section in sections.iter().filter(|section| !KNOWN_SECTIONS.contains(&section.kind.as_str())) {
        let name = format!("{} {}", section.kind, section.name);
        import.remarks.differs(section.line, name.trim(), "courser has no such part");
    }
    Ok(import.document.import("HAProxy", import.remarks))
}

const KNOWN_SECTIONS: [&str; 5] = ["global", "defaults", "frontend", "listen", "backend"];

/// What `global` says for all front ends.
#[derive(Default)]
struct Global {
    crt_base: Option<String>,
    ca_base: Option<String>,
    offer: Offer,
    /// `ssl-default-bind-options`.
    options: Vec<Line>,
}

struct Importer<'a> {
    files: &'a dyn Files,
    global: Global,
    remarks: Remarks,
    document: Document,
}

const GLOBAL_NOT_NEEDED: [(&str, &str); 10] = [
    ("chroot", "each worker denies itself files and most system calls (`confine_workers`)"),
    ("daemon", "courser stays in the foreground, where a service manager wants it"),
    ("pidfile", "the service manager knows the process"),
    ("master-worker", "the service manager is the master"),
    ("zero-warning", "`courser check` tells warnings from errors"),
    ("ulimit-n", "the service manager sets it (`LimitNOFILE=`)"),
    ("cpu-map", "`pin` binds each worker to its processor"),
    ("tune.ssl.default-dh-param", "courser has no finite-field Diffie-Hellman"),
    ("ssl-dh-param-file", "courser has no finite-field Diffie-Hellman"),
    ("default-path", "paths start at the folder of the configuration file"),
];

impl Importer<'_> {
    fn global(&mut self, section: &Section) {
        for line in &section.lines {
            let (number, text) = (line.number, line.text());
            let first = line.words.get(1).cloned().unwrap_or_default();
            match line.words[0].as_str() {
                "user" => self.document.process.set("user", first),
                "group" => self.document.process.set("group", first),
                "maxconn" => self.document.process.set_some("max_connections", first.parse::<u64>().ok()),
                "nbthread" => self.document.process.set_some("workers", first.parse::<u64>().ok()),
                "crt-base" => self.global.crt_base = Some(first),
                "ca-base" => self.global.ca_base = Some(first),
                "ssl-default-bind-ciphers" => self.global.offer.ciphers = Some(line.setting()),
                "ssl-default-bind-ciphersuites" => self.global.offer.ciphersuites = Some(line.setting()),
                "ssl-default-bind-curves" => self.global.offer.groups = Some(line.setting()),
                "ssl-default-bind-options" => self.global.options.push(line.clone()),
                "tune.ssl.lifetime" => self.document.sessions.set_some("lifetime", duration(&first, "s")),
                "hard-stop-after" => self.document.process.set_some("drain_timeout", duration(&first, "ms")),
                "log" | "log-send-hostname" | "log-tag" => {
                    self.remarks.differs(number, &text, "the log goes to standard output");
                }
                name => match GLOBAL_NOT_NEEDED.iter().find(|(key, _)| *key == name) {
                    Some((_, why)) => self.remarks.not_needed(number, &text, why),
                    None => self.remarks.differs(number, &text, "courser has no such setting"),
                },
            }
        }
    }

    fn frontend(&mut self, section: &Section, sections: &[Section]) {
        let inherited = read::defaults_of(section, sections);
        let lines: Vec<&Line> = inherited.iter().chain(&section.lines).collect();
        let title = format!("{} {}", section.kind, section.name);
        let own = || section.lines.iter();
        let binds: Vec<&Line> = own().filter(|line| line.words[0] == "bind").collect();
        let (secure, plain): (Vec<&Line>, Vec<&Line>) =
            binds.into_iter().partition(|line| line.words.iter().any(|word| word == "ssl"));
        for line in plain {
            self.remarks.unsupported(line.number, &format!("{title}: {}", line.text()), "it is not TLS");
        }
        if secure.is_empty() {
            return;
        }
        let mode = lines.iter().rev().find(|line| line.words[0] == "mode");
        if mode.is_some_and(|mode| mode.words.get(1).is_some_and(|mode| mode == "http")) {
            let why = "courser reads no HTTP: let it terminate TLS in front of this, with `send_proxy = \"v2\"` there \
                       and `accept-proxy` here";
            self.remarks.unsupported(section.line, &format!("{title}: mode http"), why);
            return;
        }
        let Some(routes) = self.routes(section, sections, &title) else { return };
        for bind in secure {
            let listener = self.listener(bind, &lines, &routes, &title);
            self.document.listeners.extend(listener);
        }
    }

    fn listener(&mut self, line: &Line, lines: &[&Line], routes: &Routes, title: &str) -> Option<Listener> {
        let bind = Bind::read(line, &self.global, self.files, title, &mut self.remarks)?;
        let mut listener = Listener::default();
        let settings = &mut listener.settings;
        settings.set_some("name", bind.name.as_deref());
        settings.set_list("listen", texts(bind.addresses.iter().map(String::as_str)));
        settings.set_list("cert", bind.certificates.clone());
        settings.extend(&bind.settings);
        times(lines, settings, &mut self.remarks);
        if let Some(target) = &routes.default {
            settings.extend(target);
        }
        let Some(()) = bind.offer.write(settings, &mut self.remarks).then_some(()) else {
            self.remarks.unsupported(line.number, title, "nothing of what it negotiates is in courser");
            return None;
        };
        for (names, target) in &routes.by_name {
            let mut host = Table::default();
            host.set_list("names", texts(names.iter().map(String::as_str)));
            host.extend(target);
            listener.hosts.push(host);
        }
        if routes.default.is_none() {
            listener.settings.set("unknown_name", "refuse");
        }
        Some(listener)
    }
}

/// Where a front end's connections go.
struct Routes {
    default: Option<Table>,
    by_name: Vec<(Vec<String>, Table)>,
}

/// Settings of a front end without effect here.
const FRONTEND_NOT_NEEDED: [(&str, &str); 9] = [
    ("id", "courser knows its parts by name"),
    ("option tcplog", "each connection has a line in the log"),
    ("option dontlognull", "the close reason tells connections without a byte from others"),
    ("option tcp-smart-accept", "the kernel does as well"),
    ("option tcp-smart-connect", "the kernel does as well"),
    ("option clitcpka", "keepalive is always on (`tcp_keepalive`)"),
    ("option srvtcpka", "keepalive is always on (`tcp_keepalive`)"),
    ("option tcpka", "keepalive is always on (`tcp_keepalive`)"),
    ("option logasap", "each connection has its line at its end"),
];

impl Importer<'_> {
    /// Reads where connections go. `None` where that cannot be done here.
    fn routes(&mut self, section: &Section, sections: &[Section], title: &str) -> Option<Routes> {
        let mut routes = Routes { default: None, by_name: Vec::new() };
        let mut acls: Vec<(&str, Option<Vec<String>>)> = Vec::new();
        let (mut is_possible, mut has_default) = (true, false);
        if section.kind == "listen" && section.lines.iter().any(|line| line.words[0] == "server") {
            has_default = true;
            routes.default = self.pool(section, sections);
        }
        for line in &section.lines {
            let (number, text) = (line.number, format!("{title}: {}", line.text()));
            let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["default_backend", name] | ["use_backend", name] => {
                    has_default = true;
                    routes.default = self.backend(name, sections, line);
                }
                ["acl", name, condition @ ..] => acls.push((name, server_names(condition))),
                ["use_backend", name, "if", condition @ ..] => {
                    let names = match condition {
                        ["{", inner @ .., "}"] => server_names(inner),
                        [acl] => {
                            acls.iter().find(|(known, _)| known == acl).and_then(|(_, names)| names.clone())
                        }
                        _ => None,
                    };
                    match (names, self.backend(name, sections, line)) {
                        (Some(names), Some(target)) => routes.by_name.push((names, target)),
                        _ => {
                            self.remarks.unsupported(
                                number,
                                &text,
                                "courser decides by the server name alone",
                            );
                            is_possible = false;
                        }
                    }
                }
                [
                    "bind" | "mode" | "server" | "default-server" | "balance" | "timeout" | "description",
                    ..,
                ] => {}
                ["log" | "log-format", ..] => {
                    self.remarks.differs(number, &text, "the log goes to standard output");
                }
                ["maxconn", ..] => {
                    self.remarks.differs(number, &text, "`max_connections` holds for the process");
                }
                ["stick-table" | "stick", ..] => {
                    self.remarks.differs(number, &text, "a pool's `affinity` needs no table");
                }
                _ => {
                    let both = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
                    match FRONTEND_NOT_NEEDED.iter().find(|(key, _)| *key == words[0] || *key == both) {
                        Some((_, why)) => self.remarks.not_needed(number, &text, why),
                        None => {
                            self.remarks.unsupported(
                                number,
                                &text,
                                "courser has none, and it may decide who is served",
                            );
                            is_possible = false;
                        }
                    }
                }
            }
        }
        let goes_nowhere = routes.default.is_none() && (has_default || routes.by_name.is_empty());
        if goes_nowhere && !has_default {
            self.remarks.unsupported(section.line, title, "it has no server");
        }
        (is_possible && !goes_nowhere).then_some(routes)
    }

    fn backend(&mut self, name: &str, sections: &[Section], line: &Line) -> Option<Table> {
        let found = sections
            .iter()
            .find(|section| section.name == name && matches!(section.kind.as_str(), "backend" | "listen"));
        if found.is_none() {
            self.remarks.unsupported(line.number, &line.text(), "there is no such backend");
        }
        self.pool(found?, sections)
    }
}

/// The names of a condition on the server name that TLS was asked for.
fn server_names(condition: &[&str]) -> Option<Vec<String>> {
    let ["ssl_fc_sni" | "req.ssl_sni" | "req_ssl_sni", rest @ ..] = condition else { return None };
    let names: Vec<&str> = rest.iter().copied().filter(|word| *word != "-i").collect();
    let is_plain = !names.is_empty() && names.iter().all(|name| !name.starts_with('-'));
    is_plain.then(|| names.iter().map(|name| name.to_ascii_lowercase()).collect())
}

/// The times of a front end, its defaults and its backend are the connection's.
fn times(lines: &[&Line], settings: &mut Table, remarks: &mut Remarks) {
    let mut sides: Vec<String> = Vec::new();
    let mut tunnel = None;
    for line in lines.iter().filter(|line| line.words[0] == "timeout") {
        let [_, which, value] = line.words.as_slice() else { continue };
        match which.as_str() {
            "connect" => settings.set_some("connect_timeout", duration(value, "ms")),
            "client" | "server" => sides.push(value.clone()),
            "tunnel" => tunnel = duration(value, "ms"),
            "client-fin" | "server-fin" => {
                remarks.differs(
                    line.number,
                    &line.text(),
                    "`client_fin_timeout` and `backend_fin_timeout` can be set",
                );
            }
            _ => {}
        }
    }
    let longest = sides.iter().filter_map(|value| millis(value, "ms")).max();
    settings.set_some("idle_timeout", tunnel.or_else(|| longest.map(|millis| format!("{millis}ms"))));
}

/// A time of HAProxy in milliseconds; `unit` is that of a bare number.
fn millis(value: &str, unit: &str) -> Option<u64> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = if digits.len() == value.len() { unit } else { &value[digits.len()..] };
    let number: u64 = digits.parse().ok()?;
    let factor = match unit {
        "us" => return Some(number / 1000),
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// The same as courser writes it.
fn duration(value: &str, unit: &str) -> Option<String> {
    let millis = millis(value, unit)?;
    Some(if millis % 1000 == 0 { format!("{}s", millis / 1000) } else { format!("{millis}ms") })
}

fn joined(base: Option<&str>, path: &str) -> String {
    match base {
        Some(base) if !path.starts_with('/') => format!("{}/{path}", base.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

impl Line {
    /// The line's first value as a setting.
    fn setting(&self) -> Setting {
        Setting::new(self.number, &self.words[0], self.words.get(1).map_or("", String::as_str))
    }
}
