//! hitch.conf(5), version 1.7.

use std::path::Path;

use crate::document::{Document, Listener, Table, Value};
use crate::remark::Remarks;
use crate::service::{
    FROM_ANYONE, Offer, Setting, certificate, from_anyone, listen, protocols, seconds, server,
};
use crate::{Files, Import, Malformed};

pub(crate) fn import(text: &str, files: &dyn Files) -> Result<Import, Malformed> {
    let mut tokens = tokens(text)?;
    let entries = entries(&mut tokens.drain(..).peekable(), None)?;
    Ok(Hitch::read(entries, files)?.import("hitch"))
}

/// Part of a configuration.
pub(crate) enum Entry {
    /// `key = value`.
    Setting(Setting),
    /// `key = { … }`.
    Block(usize, String, Vec<Entry>),
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Equals,
    Open,
    Close,
}

type Tokens<'a> = std::iter::Peekable<std::vec::Drain<'a, (usize, Token)>>;

fn is_frontend(entry: &Entry) -> bool {
    matches!(entry, Entry::Setting(Setting { name, .. }) | Entry::Block(_, name, _) if name == "frontend")
}

pub(crate) fn malformed(line: usize, message: impl Into<String>) -> Malformed {
    Malformed { line, message: message.into() }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Malformed> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let mut rest = line.trim_start();
        while let Some(c) = rest.chars().next() {
            let (token, length) = match c {
                '#' => break,
                '=' => (Token::Equals, 1),
                '{' => (Token::Open, 1),
                '}' => (Token::Close, 1),
                '"' => {
                    let end =
                        rest[1..].find('"').ok_or_else(|| malformed(number, "the string has no end"))?;
                    (Token::Word(rest[1..=end].to_owned()), end + 2)
                }
                _ => {
                    let is_end = |c: char| c.is_whitespace() || "={}#\"".contains(c);
                    let end = rest.find(is_end).unwrap_or(rest.len());
                    (Token::Word(rest[..end].trim_end_matches([',', ';']).to_owned()), end)
                }
            };
            tokens.push((number, token));
            rest = rest[length..].trim_start();
        }
    }
    Ok(tokens)
}

/// Entries up to the end, or to the brace that closes the block of line `open`.
fn entries(tokens: &mut Tokens<'_>, open: Option<usize>) -> Result<Vec<Entry>, Malformed> {
    let mut entries = Vec::new();
    while let Some((line, token)) = tokens.next() {
        let name = match token {
            Token::Word(name) => name,
            Token::Close if open.is_some() => return Ok(entries),
            other => return Err(malformed(line, format!("a setting was expected here, not {other:?}"))),
        };
        if !matches!(tokens.next(), Some((_, Token::Equals))) {
            return Err(malformed(line, format!("`{name}` has no `=`")));
        }
        match tokens.next() {
            Some((_, Token::Open)) => {
                entries.push(Entry::Block(line, name, self::entries(tokens, Some(line))?));
            }
            Some((_, Token::Word(first))) => {
                let mut values = vec![first];
                // `tls-protos` takes words until the next setting begins.
                while name == "tls-protos"
                    && let Some((_, Token::Word(word))) = tokens.peek()
                    && (word.starts_with("TLS") || word.starts_with("SSL"))
                {
                    values.push(word.clone());
                    tokens.next();
                }
                entries.push(Entry::Setting(Setting { line, name, value: values.join(" ") }));
            }
            _ => return Err(malformed(line, format!("`{name}` has no value"))),
        }
    }
    match open {
        Some(line) => Err(malformed(line, "the block has no `}`")),
        None => Ok(entries),
    }
}

/// Settings that hold for the whole, or for one front end.
#[derive(Clone, Default)]
struct Common {
    /// In the order of the file.
    certificates: Vec<Value>,
    staples: Vec<Value>,
    offer: Offer,
    client_auth: Option<String>,
    client_ca: Option<String>,
    aborts_unknown: Option<Setting>,
}

pub(crate) struct Hitch {
    process: Table,
    common: Common,
    frontends: Vec<Frontend>,
    /// Of all listeners.
    shared: Table,
    backend: String,
    /// Which files of `pem-dir` are certificates.
    glob: Option<String>,
    /// No listener can be taken over.
    blocked: bool,
    remarks: Remarks,
}

struct Frontend {
    line: usize,
    host: String,
    port: String,
    own: Common,
    has_globals: bool,
}

const NOT_NEEDED: [(&str, &str); 14] = [
    ("daemon", "courser stays in the foreground, where a service manager wants it"),
    ("pidfile", "the service manager knows the process"),
    ("chroot", "each worker denies itself files and most system calls (`confine_workers`)"),
    ("quiet", "events go to standard error, one line each"),
    ("log-level", "events go to standard error, one line each"),
    ("syslog", "the service manager collects standard error"),
    ("syslog-facility", "the service manager collects standard error"),
    (
        "prefer-server-ciphers",
        "the order is always the server's, and is the client's where that is faster for it",
    ),
    ("ring-slots", "buffers are taken and given back as needed"),
    ("ring-data-len", "buffers are taken and given back as needed"),
    ("recv-bufsize", "the kernel adapts its buffers"),
    ("send-bufsize", "the kernel adapts its buffers"),
    ("backend-refresh", "names are looked up every 10 s"),
    ("dbg-listen", "a setting for hitch's own tests"),
];

const DIFFERS: [(&str, &str); 5] = [
    ("log-filename", "the log goes to standard output"),
    ("ssl-engine", "courser has no engines"),
    ("enable-tcp-fastopen", "courser does not use TCP Fast Open"),
    ("tcp-fastopen", "courser does not use TCP Fast Open"),
    ("session-cache", "sessions have `[sessions] cache_size`, in bytes"),
];

/// hitch's default.
const CIPHERS: &str = "EECDH+AESGCM:EDH+AESGCM:AES256+EECDH:AES256+EDH";

impl Hitch {
    fn new() -> Self {
        let mut common = Common::default();
        common.offer.ciphers = Some(Setting::new(0, "ciphers", CIPHERS));
        let mut shared = Table::default();
        // hitch ends no connection that is quiet.
        shared.set("idle_timeout", "1d");
        Self {
            process: Table::default(),
            common,
            frontends: Vec::new(),
            shared,
            backend: "127.0.0.1:8000".to_owned(),
            glob: None,
            blocked: false,
            remarks: Remarks::default(),
        }
    }

    pub(crate) fn read(entries: Vec<Entry>, files: &dyn Files) -> Result<Self, Malformed> {
        let mut hitch = Self::new();
        // What stands at the top level holds for front ends above it too.
        let (frontends, rest): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_frontend);
        let mut folder = None;
        for entry in rest {
            match entry {
                Entry::Setting(setting) if setting.name == "pem-dir" => folder = Some(setting),
                Entry::Setting(setting) => hitch.setting(&setting)?,
                Entry::Block(line, name, block) if name == "pem-file" => {
                    pem_block(line, &block, &mut hitch.common, &mut hitch.remarks)?;
                }
                Entry::Block(line, name, _) => {
                    return Err(malformed(line, format!("hitch has no `{name}` block")));
                }
            }
        }
        if let Some(folder) = folder {
            hitch.pem_dir(&folder, files)?;
        }
        for entry in frontends {
            match entry {
                Entry::Setting(setting) => hitch.frontend_line(&setting)?,
                Entry::Block(line, _, block) => hitch.frontend_block(line, block)?,
            }
        }
        Ok(hitch)
    }

    fn setting(&mut self, setting: &Setting) -> Result<(), Malformed> {
        if common(setting, &mut self.common, &mut self.remarks)? {
            return Ok(());
        }
        let Setting { line, name, value } = setting;
        let (line, text) = (*line, setting.text());
        let is_on = matches!(value.as_str(), "on" | "yes" | "true" | "1");
        match name.as_str() {
            "backend" => self.backend = backend(line, value)?,
            "workers" => self.process.set_some("workers", value.parse::<u64>().ok()),
            "backlog" => self.shared.set_some("backlog", value.parse::<u64>().ok()),
            "user" => self.process.set("user", value.as_str()),
            "group" => self.process.set("group", value.as_str()),
            "keepalive" => self.shared.set_some("tcp_keepalive", seconds(value)),
            "ssl-handshake-timeout" => self.shared.set_some("handshake_timeout", seconds(value)),
            "backend-connect-timeout" => self.shared.set_some("connect_timeout", seconds(value)),
            "alpn-protos" => self.shared.set_list("alpn", protocols(value)),
            "write-proxy" | "write-proxy-v2" if is_on => self.shared.set("send_proxy", "v2"),
            "write-proxy-v1" if is_on => self.shared.set("send_proxy", "v1"),
            "write-ip" if is_on => self.block(
                line,
                &text,
                "the backend expects an address in a form that courser does not write",
            ),
            // hitch hands on what it was sent, which is version 1 alone.
            "proxy-proxy" if is_on => {
                self.shared.set("proxy_protocol", from_anyone());
                self.shared.set("send_proxy", "v1");
                self.remarks.differs(line, &text, FROM_ANYONE);
            }
            "client" if is_on => self.block(line, &text, "courser does not originate TLS for plain clients"),
            "write-ip" | "write-proxy" | "write-proxy-v1" | "write-proxy-v2" | "proxy-proxy" | "client" => {}
            "pem-dir-glob" => self.glob = Some(value.clone()),
            "ocsp-verify-staple" => self.remarks.not_needed(line, &text, VERIFIED),
            name if name.starts_with("ocsp-") => {
                self.remarks.differs(
                    line,
                    &text,
                    "courser fetches no staples: name files of them as `staple`",
                );
            }
            name => {
                let find =
                    |list: &[(&str, &'static str)]| list.iter().find(|(key, _)| *key == name).map(|it| it.1);
                match (find(&NOT_NEEDED), find(&DIFFERS)) {
                    (Some(why), _) => self.remarks.not_needed(line, &text, why),
                    (None, Some(why)) => self.remarks.differs(line, &text, why),
                    (None, None) => return Err(malformed(line, format!("hitch has no setting `{name}`"))),
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, line: usize, text: &str, why: &str) {
        self.blocked = true;
        self.remarks.unsupported(line, text, why);
    }

    fn pem_dir(&mut self, setting: &Setting, files: &dyn Files) -> Result<(), Malformed> {
        let found = files.list(Path::new(&setting.value));
        let found = found.map_err(|error| malformed(setting.line, format!("{}: {error}", setting.value)))?;
        let matches = |name: &str| self.glob.as_deref().is_none_or(|glob| matches_glob(glob, name));
        let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let certificates =
            found.iter().filter(|file| matches(&name(file))).map(|file| file.to_string_lossy().into_owned());
        // Before those of `pem-file`, of which the last serves whom no name fits; and without any, the first does.
        let mut all: Vec<Value> = certificates.map(Value::from).collect();
        if self.common.certificates.is_empty() {
            all.reverse();
        }
        all.append(&mut self.common.certificates);
        self.common.certificates = all;
        let why = "the files of today are named one by one: name those of later days too";
        self.remarks.differs(setting.line, &setting.text(), why);
        Ok(())
    }

    /// `[HOST]:PORT+CERT`.
    fn frontend_line(&mut self, setting: &Setting) -> Result<(), Malformed> {
        let Setting { line, value, .. } = setting;
        let (address, chain) =
            value.split_once('+').map_or((value.as_str(), None), |(address, chain)| (address, Some(chain)));
        let (host, port) = endpoint(*line, address)?;
        let mut frontend = Frontend { host, port, ..self.frontend(*line) };
        frontend.own.certificates.extend(chain.map(|chain| certificate(chain, None)));
        self.frontends.push(frontend);
        Ok(())
    }

    /// One at the default address.
    fn frontend(&self, line: usize) -> Frontend {
        let own = Common { certificates: Vec::new(), staples: Vec::new(), ..self.common.clone() };
        Frontend { line, host: "*".to_owned(), port: "8443".to_owned(), own, has_globals: false }
    }

    fn frontend_block(&mut self, line: usize, block: Vec<Entry>) -> Result<(), Malformed> {
        let mut frontend = self.frontend(line);
        for entry in block {
            match entry {
                Entry::Block(line, name, block) if name == "pem-file" => {
                    pem_block(line, &block, &mut frontend.own, &mut self.remarks)?;
                }
                Entry::Block(line, name, _) => {
                    return Err(malformed(line, format!("hitch has no `{name}` block here")));
                }
                Entry::Setting(setting) if common(&setting, &mut frontend.own, &mut self.remarks)? => {}
                Entry::Setting(setting) => match setting.name.as_str() {
                    "host" => frontend.host.clone_from(&setting.value),
                    "port" => frontend.port.clone_from(&setting.value),
                    "match-global-certs" => frontend.has_globals = setting.value == "on",
                    "prefer-server-ciphers" => {}
                    name => {
                        return Err(malformed(setting.line, format!("hitch has no `{name}` in a front end")));
                    }
                },
            }
        }
        self.frontends.push(frontend);
        Ok(())
    }

    pub(crate) fn import(mut self, program: &str) -> Import {
        if self.frontends.is_empty() {
            self.frontends.push(self.frontend(1));
        }
        let mut document = Document { process: self.process, ..Document::default() };
        for frontend in self.frontends.into_iter().filter(|_| !self.blocked) {
            let listener = listener(frontend, &self.common, &self.shared, &self.backend, &mut self.remarks);
            document.listeners.extend(listener);
        }
        document.import(program, self.remarks)
    }
}

fn listener(
    frontend: Frontend,
    global: &Common,
    shared: &Table,
    backend: &str,
    remarks: &mut Remarks,
) -> Option<Listener> {
    let Frontend { line, host, port, own, has_globals } = frontend;
    let Some(address) = listen(&host, &port) else {
        remarks.unsupported(
            line,
            "frontend",
            &format!("courser listens on addresses, and `{host}` is a name"),
        );
        return None;
    };
    let (mut certificates, mut staples) = (own.certificates, own.staples);
    if certificates.is_empty() || has_globals {
        certificates.splice(0..0, global.certificates.iter().cloned());
        staples.extend(global.staples.iter().cloned());
    }
    // Of hitch's the last one serves whom no name fits, and wins where names are equal; of ours the first.
    certificates.reverse();
    let mut settings = Table::default();
    settings.set_list("listen", vec![address.into()]);
    settings.set_list("cert", certificates);
    settings.set_list("staple", staples);
    settings.set_list("backend", vec![backend.into()]);
    settings.extend(shared);
    if let Some(setting) = own.aborts_unknown {
        settings.set("unknown_name", "refuse");
        remarks.differs(setting.line, &setting.text(), "clients that name no server are refused too");
    }
    if let Some(mode) = own.client_auth.filter(|mode| mode != "none") {
        settings.set("client_auth", mode);
        settings.set_list("client_ca", own.client_ca.into_iter().map(Value::from).collect());
    }
    if !own.offer.write(&mut settings, remarks) {
        remarks.unsupported(line, "frontend", "nothing of what it negotiates is in courser");
        return None;
    }
    Some(Listener { settings, hosts: Vec::new() })
}

/// Reads a setting that front ends have too. Returns whether it is one.
fn common(setting: &Setting, common: &mut Common, remarks: &mut Remarks) -> Result<bool, Malformed> {
    let Setting { line, name, value } = setting;
    match name.as_str() {
        "pem-file" => common.certificates.push(certificate(value, None)),
        "ciphers" => common.offer.ciphers = Some(setting.clone()),
        "ciphersuites" => common.offer.ciphersuites = Some(setting.clone()),
        "ecdh-curve" => common.offer.groups = Some(setting.clone()),
        "tls-protos" => versions(setting, &mut common.offer, remarks),
        // Old names, for all versions.
        "tls" | "ssl" => remarks.differs(*line, &setting.text(), "TLS 1.2 and 1.3 are on"),
        "sni-nomatch-abort" => common.aborts_unknown = (value == "on").then(|| setting.clone()),
        "client-verify" => match value.as_str() {
            "none" | "optional" | "required" => common.client_auth = Some(value.clone()),
            _ => return Err(malformed(*line, "`client-verify` is none, optional or required")),
        },
        "client-verify-ca" => common.client_ca = Some(value.clone()),
        _ => return Ok(false),
    }
    Ok(true)
}

fn versions(setting: &Setting, offer: &mut Offer, remarks: &mut Remarks) {
    let has = |version: &str| setting.value.split_whitespace().any(|word| word == version);
    (offer.tls12, offer.tls13) = (has("TLSv1.2"), has("TLSv1.3"));
    if has("SSLv3") || has("TLSv1.0") || has("TLSv1.1") {
        remarks.differs(setting.line, &setting.text(), "courser has TLS 1.2 and 1.3 alone (RFC 8996)");
    }
}

fn pem_block(
    line: usize,
    block: &[Entry],
    common: &mut Common,
    remarks: &mut Remarks,
) -> Result<(), Malformed> {
    let (mut chain, mut key) = (None, None);
    for entry in block {
        let Entry::Setting(setting) = entry else { return Err(malformed(line, "a block in `pem-file`")) };
        match setting.name.as_str() {
            "cert" => chain = Some(setting.value.as_str()),
            "private-key" => key = Some(setting.value.as_str()),
            "ocsp-resp-file" => common.staples.push(setting.value.as_str().into()),
            "ocsp-verify-staple" => remarks.not_needed(setting.line, &setting.text(), VERIFIED),
            name => return Err(malformed(setting.line, format!("hitch has no `{name}` in `pem-file`"))),
        }
    }
    let chain = chain.ok_or_else(|| malformed(line, "`pem-file` has no `cert`"))?;
    common.certificates.push(certificate(chain, key));
    Ok(())
}

const VERIFIED: &str = "a staple is always verified";

fn backend(line: usize, value: &str) -> Result<String, Malformed> {
    if value.starts_with('/') {
        return Ok(format!("unix:{value}"));
    }
    let (host, port) = endpoint(line, value)?;
    Ok(server(&host, &port))
}

fn endpoint(line: usize, value: &str) -> Result<(String, String), Malformed> {
    // stud wrote HOST,PORT.
    let (host, port) =
        value.rsplit_once([':', ',']).ok_or_else(|| malformed(line, format!("`{value}` has no port")))?;
    Ok((host.trim_start_matches('[').trim_end_matches(']').to_owned(), port.to_owned()))
}

/// A pattern of glob(7) with `*` and `?`.
fn matches_glob(pattern: &str, name: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return name.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    match first {
        '*' => {
            (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| matches_glob(rest, &name[at..]))
        }
        first => name
            .chars()
            .next()
            .is_some_and(|c| (first == '?' || first == c) && matches_glob(rest, &name[c.len_utf8()..])),
    }
}
