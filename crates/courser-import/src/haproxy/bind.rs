//! `bind ADDRESS … ssl …`.

use std::path::Path;

use super::read::Line;
use super::{Global, joined};
use crate::Files;
use crate::document::{Table, Value, texts};
use crate::remark::Remarks;
use crate::service::{FROM_ANYONE, Offer, Setting, certificate, from_anyone, listen, protocols};

/// A secure address of a front end.
pub(super) struct Bind {
    pub(super) name: Option<String>,
    pub(super) addresses: Vec<String>,
    pub(super) certificates: Vec<Value>,
    pub(super) settings: Table,
    pub(super) offer: Offer,
}

/// Words with so many values that change nothing here.
const NOT_NEEDED: [(&str, usize); 13] = [
    ("ssl", 0),
    ("v4v6", 0),
    ("defer-accept", 0),
    ("tfo", 0),
    ("id", 1),
    ("nice", 1),
    ("process", 1),
    ("thread", 1),
    ("shards", 1),
    ("maxconn", 1),
    ("ecdhe", 1),
    ("prefer-client-ciphers", 0),
    ("allow-0rtt", 0),
];

/// Reads the words of one line.
struct Reader<'a> {
    line: &'a Line,
    global: &'a Global,
    files: &'a dyn Files,
    bind: Bind,
    authorities: Vec<Value>,
    /// Of revoked certificates.
    lists: Vec<Value>,
    verify: Option<&'a str>,
    /// Why it cannot be taken over.
    blocked: Option<String>,
}

impl Bind {
    pub(super) fn read(
        line: &Line,
        global: &Global,
        files: &dyn Files,
        title: &str,
        remarks: &mut Remarks,
    ) -> Option<Self> {
        let bind = Self {
            name: None,
            addresses: Vec::new(),
            certificates: Vec::new(),
            settings: Table::default(),
            offer: global.offer.clone(),
        };
        let (authorities, lists) = (Vec::new(), Vec::new());
        let mut reader =
            Reader { line, global, files, bind, authorities, lists, verify: None, blocked: None };
        for options in &global.options {
            reader.options(&mut options.words.iter().skip(1).map(String::as_str), remarks);
        }
        let mut words = line.words.iter().skip(1).map(String::as_str);
        reader.addresses(words.next().unwrap_or_default());
        reader.options(&mut words, remarks);
        reader.finish(title, remarks)
    }
}

impl<'a> Reader<'a> {
    fn addresses(&mut self, list: &str) {
        for address in list.split(',') {
            let listen = match address.rsplit_once(':') {
                _ if address.starts_with('/') => Some(format!("unix:{address}")),
                _ if address.starts_with("unix@") => Some(format!("unix:{}", &address[5..])),
                _ if address.starts_with("abns@") => Some(format!("abstract:{}", &address[5..])),
                // `:443` is every IPv4 address; `*:443` too.
                Some(("" | "*", port)) => listen("0.0.0.0", port),
                // Every IPv6 address takes IPv4 too, unless told otherwise.
                Some(("::" | "[::]", port)) => listen("*", port),
                Some((host, port)) => {
                    listen(host.trim_start_matches("ipv4@").trim_start_matches("ipv6@"), port)
                }
                None => None,
            };
            match listen {
                Some(listen) => self.bind.addresses.push(listen),
                None => self.block(format!("courser cannot listen on `{address}`")),
            }
        }
    }

    fn block(&mut self, why: impl Into<String>) {
        self.blocked.get_or_insert_with(|| why.into());
    }

    fn options(&mut self, words: &mut dyn Iterator<Item = &'a str>, remarks: &mut Remarks) {
        let number = self.line.number;
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            let base = self.global.ca_base.as_deref();
            match word {
                "crt" => {
                    let path = joined(self.global.crt_base.as_deref(), value());
                    self.certificates(&path, remarks);
                }
                "alpn" => self.bind.settings.set_list("alpn", protocols(value())),
                "ca-file" => self.authorities.push(joined(base, value()).into()),
                "verify" => self.verify = Some(value()),
                "ciphers" => self.bind.offer.ciphers = Some(Setting::new(number, word, value())),
                "ciphersuites" => self.bind.offer.ciphersuites = Some(Setting::new(number, word, value())),
                "curves" => self.bind.offer.groups = Some(Setting::new(number, word, value())),
                "ssl-min-ver" => self.bind.offer.tls12 &= value() != "TLSv1.3",
                "ssl-max-ver" => self.bind.offer.tls13 &= value() == "TLSv1.3",
                "no-tlsv12" | "force-tlsv13" => self.bind.offer.tls12 = false,
                "no-tlsv13" | "force-tlsv12" => self.bind.offer.tls13 = false,
                "no-sslv3" | "no-tlsv10" | "no-tlsv11" => {}
                "no-tls-tickets" => {
                    remarks.differs(number, word, "set `[sessions] tickets = false`, for all listeners");
                }
                "backlog" => self.bind.settings.set_some("backlog", value().parse::<u64>().ok()),
                "name" => self.bind.name = Some(value().to_owned()),
                "strict-sni" => {
                    self.bind.settings.set("unknown_name", "refuse");
                }
                "user" | "group" | "uid" | "gid" | "mode" => {
                    let _ = value();
                    remarks.differs(number, word, "the socket belongs to courser's user");
                }
                "v6only" => {
                    for address in &mut self.bind.addresses {
                        *address = address.replacen("*:", "[::]:", 1);
                    }
                }
                "accept-proxy" => {
                    let is_unix =
                        |listen: &String| listen.starts_with("unix:") || listen.starts_with("abstract:");
                    let from = match self.bind.addresses.iter().all(is_unix) {
                        true => Value::Table(vec![("from", Value::List(texts(["unix"])))]),
                        false => {
                            remarks.differs(number, word, FROM_ANYONE);
                            from_anyone()
                        }
                    };
                    self.bind.settings.set("proxy_protocol", from);
                }
                "crl-file" => self.lists.push(joined(base, value()).into()),
                "crt-list" => {
                    let _ = value();
                    self.block("name its files in `cert`, and names that differ in `[[listener.host]]`");
                }
                _ => match NOT_NEEDED.iter().find(|(known, _)| *known == word) {
                    Some((_, values)) => (0..*values).for_each(|_| {
                        words.next();
                    }),
                    None => self.block(format!("courser does not have `{word}`")),
                },
            }
        }
    }

    /// A certificate, one for each kind of key beside it (`.ecdsa`, `.rsa`), or all of a folder.
    fn certificates(&mut self, path: &str, remarks: &mut Remarks) {
        if let Ok(files) = self.files.list(Path::new(path)) {
            let is_certificate = |name: &str| {
                ![".key", ".ocsp", ".issuer", ".sctl", ".dh"].iter().any(|end| name.ends_with(end))
            };
            let names = files.iter().map(|file| file.to_string_lossy().into_owned());
            let found: Vec<Value> =
                names.filter(|name| is_certificate(name)).map(|name| self.one(&name)).collect();
            self.bind.certificates.extend(found);
            remarks.differs(
                self.line.number,
                &format!("crt {path}"),
                "the files of today are named one by one: name those of later days too",
            );
            return;
        }
        let kinds: Vec<String> = ["ecdsa", "rsa"].iter().map(|kind| format!("{path}.{kind}")).collect();
        let bundle: Vec<&String> =
            kinds.iter().filter(|file| self.files.read(Path::new(file)).is_ok()).collect();
        if bundle.is_empty() || self.files.read(Path::new(path)).is_ok() {
            let one = self.one(path);
            self.bind.certificates.push(one);
        } else {
            let bundle: Vec<Value> = bundle.into_iter().map(|file| self.one(file)).collect();
            self.bind.certificates.extend(bundle);
        }
    }

    /// The key is in the file, or beside it with the name `.key`.
    fn one(&self, path: &str) -> Value {
        let key = format!("{path}.key");
        let has_key = |text: String| text.contains("PRIVATE KEY-----");
        let is_apart =
            !self.files.read(Path::new(path)).is_ok_and(has_key) && self.files.read(Path::new(&key)).is_ok();
        certificate(path, is_apart.then_some(key.as_str()))
    }

    fn finish(mut self, title: &str, remarks: &mut Remarks) -> Option<Bind> {
        match self.verify {
            Some(mode @ ("required" | "optional")) if !self.authorities.is_empty() => {
                self.bind.settings.set("client_auth", mode);
                let authorities = std::mem::take(&mut self.authorities);
                self.bind.settings.set_list("client_ca", authorities);
                self.bind.settings.set_list("client_crl", std::mem::take(&mut self.lists));
            }
            Some("required" | "optional") => self.block("it verifies clients without `ca-file`"),
            _ => {}
        }
        match self.blocked {
            Some(why) => {
                remarks.unsupported(self.line.number, &format!("{title}: {}", self.line.text()), &why);
                None
            }
            None => Some(self.bind),
        }
    }
}
