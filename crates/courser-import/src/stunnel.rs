//! stunnel.conf, version 5.

use std::path::Path;

use crate::document::{Document, Listener, Table, Value, texts};
use crate::hitch::malformed;
use crate::remark::Remarks;
use crate::service::{Offer, Setting, certificate, listen, seconds, server};
use crate::{Files, Import, Malformed};

pub(crate) fn import(text: &str, files: &dyn Files) -> Result<Import, Malformed> {
    let mut reader = Reader::default();
    reader.read(text, files, 0)?;
    let mut remarks = Remarks::default();
    let mut document = Document::default();
    process(&reader.global, &mut document, &mut remarks);
    if reader.services.is_empty() {
        remarks.unsupported(1, "inetd mode", "the file has no service, and courser is no helper of inetd");
    }
    let mut made: Vec<(String, usize)> = Vec::new();
    for service in &reader.services {
        let all = Service {
            settings: reader.global.iter().chain(&service.settings).cloned().collect(),
            ..service.clone()
        };
        match all.last("sni") {
            Some(sni) => host(&all, sni, &made, &mut document, &mut remarks),
            None => {
                if let Some(listener) = all.listener(&mut document, &mut remarks) {
                    made.push((service.name.clone(), document.listeners.len()));
                    document.listeners.push(listener);
                }
            }
        }
    }
    Ok(document.import("stunnel", remarks))
}

/// What is read of files.
#[derive(Default)]
struct Reader {
    /// Before the first service: of the process, and defaults of services.
    global: Vec<Setting>,
    services: Vec<Service>,
}

#[derive(Clone)]
struct Service {
    line: usize,
    name: String,
    settings: Vec<Setting>,
}

/// Files that include files.
const DEEPEST: usize = 8;

impl Reader {
    fn read(&mut self, text: &str, files: &dyn Files, depth: usize) -> Result<(), Malformed> {
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let (number, line) = (index + 1, line.trim());
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let name = name.strip_suffix(']').ok_or_else(|| malformed(number, "`[` without `]`"))?;
                self.services.push(Service { line: number, name: name.to_owned(), settings: Vec::new() });
                continue;
            }
            let (name, value) =
                line.split_once('=').ok_or_else(|| malformed(number, format!("`{line}` has no `=`")))?;
            let setting = Setting::new(number, name.trim(), value.trim());
            if setting.name.eq_ignore_ascii_case("include") {
                self.include(&setting, files, depth)?;
            } else {
                self.services
                    .last_mut()
                    .map_or(&mut self.global, |service| &mut service.settings)
                    .push(setting);
            }
        }
        Ok(())
    }

    fn include(&mut self, setting: &Setting, files: &dyn Files, depth: usize) -> Result<(), Malformed> {
        let cannot = |error| malformed(setting.line, format!("{}: {error}", setting.value));
        if depth == DEEPEST {
            return Err(malformed(setting.line, "files include each other"));
        }
        for file in files.list(Path::new(&setting.value)).map_err(cannot)? {
            self.read(&files.read(&file).map_err(cannot)?, files, depth + 1)?;
        }
        Ok(())
    }
}

/// Settings of the process.
fn process(global: &[Setting], document: &mut Document, remarks: &mut Remarks) {
    for setting in global {
        let (line, text) = (setting.line, setting.text());
        match setting.name.to_ascii_lowercase().as_str() {
            "setuid" => document.process.set("user", setting.value.as_str()),
            "setgid" => document.process.set("group", setting.value.as_str()),
            "foreground" | "pid" | "service" | "rndbytes" | "rndfile" | "rndoverwrite" | "syslog" => {
                remarks.not_needed(line, &text, "the service manager does it");
            }
            "chroot" => {
                remarks.not_needed(
                    line,
                    &text,
                    "each worker denies itself files and most system calls (`confine_workers`)",
                );
            }
            "output" | "log" => remarks.differs(line, &text, "the log goes to standard output"),
            "engine" | "enginectrl" | "enginedefault" | "fips" | "compression" | "provider" => {
                remarks.differs(line, &text, "courser's cryptography has none");
            }
            _ => {}
        }
    }
}

/// Settings of the process, which are no settings of services.
const PROCESS: [&str; 17] = [
    "setuid",
    "setgid",
    "foreground",
    "pid",
    "service",
    "rndbytes",
    "rndfile",
    "rndoverwrite",
    "syslog",
    "chroot",
    "output",
    "log",
    "engine",
    "enginectrl",
    "enginedefault",
    "fips",
    "compression",
];

/// Settings that decide who may connect, or what the other side gets, and that courser has not.
const DECIDING: [(&str, &str); 19] = [
    ("exec", "courser starts no programs"),
    ("execargs", "courser starts no programs"),
    ("pty", "courser starts no programs"),
    ("verifypeer", "courser trusts authorities, not single certificates of clients"),
    ("checkhost", "courser does not compare names in certificates of clients"),
    ("checkip", "courser does not compare addresses in certificates of clients"),
    ("checkemail", "courser does not compare addresses in certificates of clients"),
    ("crlpath", "name the lists in `client_crl`"),
    ("capath", "name its files in `client_ca`"),
    ("ident", "courser does not ask identd"),
    ("username", "courser does not ask identd"),
    ("transparent", "courser connects from its own address: use `send_proxy`"),
    ("redirect", "courser sends clients without a good certificate nowhere"),
    ("psksecrets", "courser has no handshakes with secrets that were shared before"),
    ("pskidentity", "courser has no handshakes with secrets that were shared before"),
    ("protocolhost", "courser speaks none of the protocols inside"),
    ("protocolauthentication", "courser speaks none of the protocols inside"),
    ("xclient", "courser speaks none of the protocols inside"),
    ("provider", "courser's cryptography has none"),
];

const DIFFERS: [(&str, &str); 9] = [
    ("local", "courser connects from the address that the system chooses"),
    (
        "socket",
        "courser sets the options of its sockets itself; `tcp_keepalive` and `tcp_user_timeout` can be set",
    ),
    ("securitylevel", "courser has nothing weaker than level 2"),
    ("ocsp", "courser asks no OCSP responder: use lists of revoked certificates"),
    ("ocspaia", "courser asks no OCSP responder: use lists of revoked certificates"),
    ("ocsprequire", "courser asks no OCSP responder: use lists of revoked certificates"),
    ("ticketkeysecret", "keys of tickets come from `[fleet] key`"),
    ("ticketmacsecret", "keys of tickets come from `[fleet] key`"),
    ("sessioncachesize", "`[sessions] cache_size` is in bytes"),
];

const NOT_NEEDED: [(&str, &str); 12] = [
    ("debug", "events go to standard error, one line each"),
    ("logid", "each connection has a number in the log"),
    ("delay", "names are looked up every 10 s, and no connection waits for it"),
    ("libwrap", "use the packet filter"),
    ("retry", "each connection is tried at other servers by itself"),
    ("reset", "an error of one side is a reset of the other"),
    ("renegotiation", "courser never renegotiates"),
    ("stack", "connections have no stack of their own"),
    ("timeoutclose", "`backend_fin_timeout` and `client_fin_timeout` can be set"),
    ("engineid", "courser's keys are files"),
    ("enginenum", "courser's keys are files"),
    ("config", "the cryptography has no settings of its own"),
];

impl Service {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.settings.iter().filter(move |setting| setting.name.eq_ignore_ascii_case(name))
    }

    fn last<'a>(&'a self, name: &'a str) -> Option<&'a Setting> {
        self.all(name).last()
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.last(name).is_some_and(|setting| setting.value.eq_ignore_ascii_case(value))
    }

    fn listener(&self, document: &mut Document, remarks: &mut Remarks) -> Option<Listener> {
        let accept = match self.last("accept") {
            Some(accept) => accept,
            None => {
                self.leave_out(self.line, "", "the service has no `accept`", remarks);
                return None;
            }
        };
        let (host, port) = accept.value.rsplit_once(':').unwrap_or(("0.0.0.0", &accept.value));
        let address = match accept.value.starts_with('/') {
            true => Some(format!("unix:{}", accept.value)),
            false => listen(host, port),
        };
        let Some(address) = address else {
            self.leave_out(
                accept.line,
                &accept.text(),
                "courser listens on addresses, not on names",
                remarks,
            );
            return None;
        };
        let mut settings = Table::default();
        settings.set("name", self.name.as_str());
        settings.set_list("listen", vec![address.into()]);
        self.serve(&mut settings, document, remarks).then(|| Listener { settings, hosts: Vec::new() })
    }

    /// Sets how the service is served. Returns false where it cannot be.
    fn serve(&self, table: &mut Table, document: &mut Document, remarks: &mut Remarks) -> bool {
        if !self.remark(remarks)
            || !self.forward(table, document, remarks)
            || !self.authenticate(table, remarks)
        {
            return false;
        }
        table.set_list("cert", self.certificates());
        self.times(table, document, remarks);
        if self.offer(remarks).write(table, remarks) {
            return true;
        }
        self.leave_out(self.line, "", "nothing of what it negotiates is in courser", remarks);
        false
    }

    fn leave_out(&self, line: usize, text: &str, why: &str, remarks: &mut Remarks) {
        let setting =
            if text.is_empty() { format!("[{}]", self.name) } else { format!("[{}] {text}", self.name) };
        remarks.unsupported(line, &setting, why);
    }

    /// Says what is different. Returns false where the service cannot be taken over.
    fn remark(&self, remarks: &mut Remarks) -> bool {
        let mut is_possible = true;
        for setting in &self.settings {
            let (line, name, text) = (setting.line, setting.name.to_ascii_lowercase(), setting.text());
            let find =
                |list: &[(&str, &'static str)]| list.iter().find(|(key, _)| *key == name).map(|it| it.1);
            let deciding = match name.as_str() {
                "client" if setting.value == "yes" => {
                    Some("courser does not originate TLS for plain clients")
                }
                "verifypeer" | "transparent" if setting.value == "no" => None,
                "protocol" if setting.value != "proxy" => Some("courser speaks none of the protocols inside"),
                name if name.starts_with("psk") => find(&DECIDING[13..14]),
                _ => find(&DECIDING),
            };
            if let Some(why) = deciding {
                self.leave_out(line, &text, why, remarks);
                is_possible = false;
            } else if let Some(why) = find(&DIFFERS) {
                remarks.differs(line, &text, why);
            } else if let Some(why) = find(&NOT_NEEDED) {
                remarks.not_needed(line, &text, why);
            } else if !KNOWN.contains(&name.as_str()) && !PROCESS.contains(&name.as_str()) {
                self.leave_out(line, &text, "courser does not know what it does", remarks);
                is_possible = false;
            }
        }
        is_possible
    }

    /// One, since a later setting replaces an earlier one.
    fn certificates(&self) -> Vec<Value> {
        let key = self.last("key").map(|key| key.value.as_str());
        self.last("cert").map(|cert| certificate(&cert.value, key)).into_iter().collect()
    }

    fn forward(&self, table: &mut Table, document: &mut Document, remarks: &mut Remarks) -> bool {
        let address = |setting: &Setting| match setting.value.rsplit_once(':') {
            _ if setting.value.starts_with('/') => format!("unix:{}", setting.value),
            Some((host, port)) => server(host, port),
            None => server("localhost", &setting.value),
        };
        let servers: Vec<String> = self.all("connect").map(address).collect();
        if self.is("protocol", "proxy") {
            table.set("send_proxy", "v1");
        }
        match servers.as_slice() {
            [] => {
                self.leave_out(self.line, "", "the service has no `connect`", remarks);
                return false;
            }
            [only] => table.set_list("backend", vec![only.as_str().into()]),
            [first, others @ ..] => {
                let mut pool = Table::default();
                let entries = if self.is("failover", "prio") {
                    let backup = |address: &String| {
                        Value::Table(vec![("address", address.as_str().into()), ("backup", true.into())])
                    };
                    std::iter::once(first.as_str().into()).chain(others.iter().map(backup)).collect()
                } else {
                    pool.set("balance", "round-robin");
                    texts(servers.iter().map(String::as_str))
                };
                pool.set_list("servers", entries);
                document.pools.push((self.name.clone(), pool));
                table.set("pool", self.name.as_str());
            }
        }
        true
    }

    /// Client certificates (`verify` of version 4 and before, `verifyChain` and `requireCert` since).
    fn authenticate(&self, table: &mut Table, remarks: &mut Remarks) -> bool {
        let level = self.last("verify").map_or("0", |verify| verify.value.as_str());
        let mode = match level {
            "0" if !self.is("verifyChain", "yes") => {
                if let Some(setting) = self.last("requireCert").filter(|setting| setting.value == "yes") {
                    let why = "courser requests no certificate that it does not verify";
                    self.leave_out(setting.line, &setting.text(), why, remarks);
                    return false;
                }
                return true;
            }
            "0" if self.is("requireCert", "no") => "optional",
            "1" => "optional",
            "0" | "2" => "required",
            _ => {
                let why = "courser trusts authorities, not single certificates of clients";
                self.leave_out(self.line, &format!("verify = {level}"), why, remarks);
                return false;
            }
        };
        let Some(authorities) = self.last("CAfile") else {
            self.leave_out(self.line, "", "it verifies clients without `CAfile`", remarks);
            return false;
        };
        table.set("client_auth", mode);
        table.set_list("client_ca", vec![authorities.value.as_str().into()]);
        let lists = self.last("CRLfile").map(|lists| lists.value.as_str().into());
        table.set_list("client_crl", lists.into_iter().collect());
        true
    }

    fn times(&self, table: &mut Table, document: &mut Document, remarks: &mut Remarks) {
        let time = |name: &str, default: &str| {
            let set = self.last(name).map_or(default, |setting| setting.value.as_str());
            seconds(if set == "0" { "86400" } else { set })
        };
        table.set_some("handshake_timeout", time("TIMEOUTbusy", "300"));
        table.set_some("connect_timeout", time("TIMEOUTconnect", "10"));
        table.set_some("idle_timeout", time("TIMEOUTidle", "43200"));
        if let Some(setting) = self.last("sessionCacheTimeout") {
            document.sessions.set_some("lifetime", seconds(&setting.value));
            remarks.differs(setting.line, &setting.text(), "the lifetime holds for all services");
        }
    }

    fn offer(&self, remarks: &mut Remarks) -> Offer {
        let setting = |name| self.last(name).cloned();
        let (ciphers, ciphersuites) = (setting("ciphers"), setting("ciphersuites"));
        let mut offer = Offer {
            ciphers,
            ciphersuites,
            groups: setting("curves").or_else(|| setting("curve")),
            ..Offer::default()
        };
        if let Some(version) = self.last("sslVersion").filter(|version| version.value != "all") {
            (offer.tls12, offer.tls13) = (version.value == "TLSv1.2", version.value == "TLSv1.3");
        }
        offer.tls12 &= !self.is("sslVersionMin", "TLSv1.3");
        offer.tls13 &=
            self.last("sslVersionMax").is_none_or(|max| matches!(max.value.as_str(), "TLSv1.3" | "all"));
        for setting in self.all("options") {
            match setting.value.as_str() {
                "NO_TLSv1.2" => offer.tls12 = false,
                "NO_TLSv1.3" => offer.tls13 = false,
                "NO_TICKET" => {
                    remarks.differs(
                        setting.line,
                        &setting.text(),
                        "set `[sessions] tickets = false`, for all services",
                    );
                }
                "-NO_SSLv3" | "-NO_TLSv1" | "-NO_TLSv1.1" => {
                    remarks.differs(
                        setting.line,
                        &setting.text(),
                        "courser has TLS 1.2 and 1.3 alone (RFC 8996)",
                    );
                }
                _ => remarks.not_needed(setting.line, &setting.text(), "an option of OpenSSL"),
            }
        }
        offer
    }
}

/// Settings that are taken over.
const KNOWN: [&str; 28] = [
    "accept",
    "connect",
    "failover",
    "protocol",
    "client",
    "cert",
    "key",
    "cafile",
    "crlfile",
    "verify",
    "verifychain",
    "verifypeer",
    "requirecert",
    "transparent",
    "ciphers",
    "ciphersuites",
    "curve",
    "curves",
    "sslversion",
    "sslversionmin",
    "sslversionmax",
    "options",
    "sni",
    "timeoutbusy",
    "timeoutconnect",
    "timeoutidle",
    "sessioncachetimeout",
    "include",
];

/// A service for names of another one: `sni = SERVICE:PATTERN`.
fn host(
    service: &Service,
    sni: &Setting,
    made: &[(String, usize)],
    document: &mut Document,
    remarks: &mut Remarks,
) {
    let (of, pattern) = sni.value.split_once(':').unwrap_or(("", &sni.value));
    let Some((_, index)) = made.iter().find(|(name, _)| name == of) else {
        service.leave_out(sni.line, &sni.text(), "there is no such service before it", remarks);
        return;
    };
    let mut table = Table::default();
    table.set("name", service.name.as_str());
    table.set_list("names", vec![pattern.to_ascii_lowercase().into()]);
    if pattern.starts_with('*') {
        remarks.differs(sni.line, &sni.text(), "`*` stands for one label");
    }
    if service.serve(&mut table, document, remarks) {
        // Of the listener alone.
        table.remove("handshake_timeout");
        document.listeners[*index].hosts.push(table);
    }
}
