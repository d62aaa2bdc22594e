//! What the services of all programs have: what TLS negotiates, in the words of OpenSSL, addresses, certificates.

use crate::ciphers;
use crate::document::{Table, Value, texts};
use crate::remark::Remarks;

/// A setting of the original.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Setting {
    pub(crate) fn new(line: usize, name: &str, value: &str) -> Self {
        Self { line, name: name.to_owned(), value: value.to_owned() }
    }

    /// As it stands there, more or less.
    pub(crate) fn text(&self) -> String {
        match self.value.is_empty() {
            true => self.name.clone(),
            false => format!("{} = {}", self.name, self.value),
        }
    }
}

/// What TLS may negotiate. What is `None` was not set.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) tls12: bool,
    pub(crate) tls13: bool,
    pub(crate) ciphers: Option<Setting>,
    pub(crate) ciphersuites: Option<Setting>,
    pub(crate) groups: Option<Setting>,
}

impl Default for Offer {
    fn default() -> Self {
        Self { tls12: true, tls13: true, ciphers: None, ciphersuites: None, groups: None }
    }
}

impl Offer {
    /// Sets versions, suites and groups. Returns false where nothing is left that courser can negotiate.
    pub(crate) fn write(mut self, table: &mut Table, remarks: &mut Remarks) -> bool {
        let tls12 = self.ciphers.as_ref().map(|ciphers| ciphers::tls12(&ciphers.value));
        let tls13 = self.ciphersuites.as_ref().map(|suites| ciphers::tls13(&suites.value));
        if let (Some(setting), Some([])) = (&self.ciphers, tls12.as_deref()) {
            remarks.differs(setting.line, &setting.text(), "courser has none of them: TLS 1.2 is off");
            self.tls12 = false;
        }
        if let (Some(setting), Some([])) = (&self.ciphersuites, tls13.as_deref()) {
            remarks.differs(setting.line, &setting.text(), "courser has none of them: TLS 1.3 is off");
            self.tls13 = false;
        }
        match (self.tls12, self.tls13) {
            (true, true) => {}
            (true, false) => table.set("versions", Value::List(texts(["1.2"]))),
            (false, true) => table.set("versions", Value::List(texts(["1.3"]))),
            (false, false) => return false,
        }
        if tls12.is_some() || tls13.is_some() {
            let mut suites = Vec::new();
            if self.tls13 {
                suites.extend(tls13.unwrap_or_else(|| ciphers::TLS13.to_vec()));
            }
            if self.tls12 {
                suites.extend(tls12.unwrap_or_else(|| ciphers::tls12("ALL")));
            }
            table.set_list("suites", texts(suites));
        }
        self.groups.is_none_or(|setting| write_groups(&setting, table, remarks))
    }
}

fn write_groups(setting: &Setting, table: &mut Table, remarks: &mut Remarks) -> bool {
    if setting.value == "auto" {
        return true;
    }
    let (groups, unknown) = ciphers::groups(&setting.value);
    if !unknown.is_empty() {
        let why = format!("courser does not have {}", unknown.join(", "));
        remarks.differs(setting.line, &setting.text(), &why);
    }
    table.set_list("groups", texts(groups.clone()));
    !groups.is_empty()
}

/// A list of protocols as programs write it: `h2, http/1.1`.
pub(crate) fn protocols(list: &str) -> Vec<Value> {
    texts(list.split(',').map(str::trim).filter(|name| !name.is_empty()))
}

/// The address to listen on, as courser writes it. `None` for a name: courser listens on addresses alone.
pub(crate) fn listen(host: &str, port: &str) -> Option<String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host {
        "" | "*" => Some(format!("*:{port}")),
        "localhost" => Some(format!("127.0.0.1:{port}")),
        host if host.contains(':') => Some(format!("[{host}]:{port}")),
        host if host.parse::<std::net::Ipv4Addr>().is_ok() => Some(format!("{host}:{port}")),
        _ => None,
    }
}

/// The address of a server, as courser writes it.
pub(crate) fn server(host: &str, port: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Every client has to send a PROXY header.
pub(crate) fn from_anyone() -> Value {
    Value::Table(vec![("from", Value::List(texts(["0.0.0.0/0", "::/0"])))])
}

/// What is to be said of it.
pub(crate) const FROM_ANYONE: &str =
    "any client may claim any address: list the networks of whoever stands in front, in `proxy_protocol`";

/// A certificate: one file with its key, or two.
pub(crate) fn certificate(chain: &str, key: Option<&str>) -> Value {
    match key {
        Some(key) if key != chain => Value::Table(vec![("chain", chain.into()), ("key", key.into())]),
        _ => chain.into(),
    }
}

/// A time in seconds, as courser writes it.
pub(crate) fn seconds(number: &str) -> Option<String> {
    number.trim().parse::<u64>().ok().map(|seconds| format!("{seconds}s"))
}
