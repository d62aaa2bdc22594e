//! `server NAME ADDRESS …` and what distributes connections to them.

use super::read::{Line, Section, defaults_of};
use super::{Importer, duration};
use crate::document::{Table, Value};
use crate::remark::Remarks;
use crate::service;

/// Words with so many values that change nothing here, or little.
const DIFFERS: [(&str, usize, &str); 12] = [
    ("check", 0, "set `check` in the pool"),
    ("inter", 1, "set `check` in the pool"),
    ("fastinter", 1, "set `check` in the pool"),
    ("downinter", 1, "set `check` in the pool"),
    ("rise", 1, "set `check` in the pool"),
    ("fall", 1, "set `check` in the pool"),
    ("observe", 1, "a server that fails three connections in a row is ejected"),
    ("error-limit", 1, "a server that fails three connections in a row is ejected"),
    ("slowstart", 1, "a server that comes back starts slowly, over 30 s"),
    ("on-marked-down", 1, "connections of a server that is down go on"),
    ("resolvers", 1, "names are looked up by the system's resolver, every 10 s"),
    ("init-addr", 1, "names are looked up by the system's resolver, every 10 s"),
];

struct Server {
    address: String,
    weight: u64,
    max_connections: Option<u64>,
    backup: bool,
    send_proxy: Option<&'static str>,
}

impl Importer<'_> {
    /// The settings that send connections to the servers of a section.
    pub(super) fn pool(&mut self, section: &Section, sections: &[Section]) -> Option<Table> {
        let inherited = defaults_of(section, sections);
        let lines = || inherited.iter().chain(&section.lines);
        let defaults: Vec<&str> = lines()
            .filter(|line| line.words[0] == "default-server")
            .flat_map(|line| line.words.iter().skip(1).map(String::as_str))
            .collect();
        let mut servers = Vec::new();
        for line in section.lines.iter().filter(|line| line.words[0] == "server") {
            servers.extend(server(line, &defaults, &mut self.remarks)?);
        }
        let Some(first) = servers.first() else {
            self.remarks.unsupported(
                section.line,
                &format!("{} {}", section.kind, section.name),
                "it has no server",
            );
            return None;
        };
        let mut table = Table::default();
        table.set_some("send_proxy", first.send_proxy);
        if servers.iter().any(|server| server.send_proxy != first.send_proxy) {
            let why = "either all servers get the PROXY header, or none";
            self.remarks.unsupported(section.line, &format!("{} {}", section.kind, section.name), why);
            return None;
        }
        if let [only] = servers.as_slice()
            && only.max_connections.is_none()
        {
            table.set_list("backend", vec![only.address.as_str().into()]);
            return Some(table);
        }
        let mut pool = Table::default();
        pool.set_list("servers", servers.iter().map(Server::entry).collect());
        let balance = lines().rfind(|line| line.words[0] == "balance");
        distribution(balance, &mut pool, &mut self.remarks);
        let queue = lines().rfind(|line| line.words.starts_with(&["timeout".to_owned(), "queue".to_owned()]));
        pool.set_some("queue_timeout", queue.and_then(|line| duration(line.words.get(2)?, "ms")));
        if !self.document.pools.iter().any(|(name, _)| *name == section.name) {
            self.document.pools.push((section.name.clone(), pool));
        }
        table.set("pool", section.name.as_str());
        Some(table)
    }
}

fn distribution(balance: Option<&Line>, pool: &mut Table, remarks: &mut Remarks) {
    // HAProxy's default.
    let Some(line) = balance else { return pool.set("balance", "round-robin") };
    match line.words.get(1).map_or("", |word| word.split('(').next().unwrap_or_default()) {
        "roundrobin" | "static-rr" => pool.set("balance", "round-robin"),
        "leastconn" => pool.set("balance", "least"),
        "random" => pool.set("balance", "random"),
        "source" => pool.set("affinity", "source"),
        _ => remarks.differs(line.number, &line.text(), "the server with the fewest connections is next"),
    }
}

/// A server that gets connections; the inner `None` is one that gets none. The outer one is where that cannot be said.
fn server(line: &Line, defaults: &[&str], remarks: &mut Remarks) -> Option<Option<Server>> {
    let address = line.words.get(2).map_or("", String::as_str);
    let address = match address.rsplit_once(':') {
        _ if address.starts_with('/') => format!("unix:{address}"),
        _ if address.starts_with("unix@") => format!("unix:{}", &address[5..]),
        _ if address.starts_with("abns@") => format!("abstract:{}", &address[5..]),
        Some((host, port)) => service::server(host, port),
        None => {
            remarks.unsupported(line.number, &line.text(), "the server has no port");
            return None;
        }
    };
    let mut server = Server { address, weight: 1, max_connections: None, backup: false, send_proxy: None };
    let mut words = defaults.iter().copied().chain(line.words.iter().skip(3).map(String::as_str));
    let mut gets_connections = true;
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|value| value.parse::<u64>().ok());
        match word {
            "weight" => server.weight = number().unwrap_or(1),
            "maxconn" => server.max_connections = number().filter(|limit| *limit > 0),
            "backup" => server.backup = true,
            "disabled" => gets_connections = false,
            "send-proxy" => server.send_proxy = Some("v1"),
            "send-proxy-v2" => server.send_proxy = Some("v2-addresses"),
            "send-proxy-v2-ssl" | "send-proxy-v2-ssl-cn" => server.send_proxy = Some("v2"),
            "id" | "maxqueue" | "minconn" => {
                words.next();
            }
            _ => match DIFFERS.iter().find(|(known, ..)| *known == word) {
                Some((_, values, why)) => {
                    (0..*values).for_each(|_| {
                        words.next();
                    });
                    remarks.differs(line.number, word, why);
                }
                None => {
                    let why = format!("courser does not have `{word}` for a server");
                    remarks.unsupported(line.number, &line.text(), &why);
                    return None;
                }
            },
        }
    }
    Some((gets_connections && server.weight > 0).then_some(server))
}

impl Server {
    fn entry(&self) -> Value {
        let mut entries: Vec<(&str, Value)> = vec![("address", self.address.as_str().into())];
        if self.weight != 1 {
            entries.push(("weight", self.weight.into()));
        }
        if let Some(limit) = self.max_connections {
            entries.push(("max_connections", limit.into()));
        }
        if self.backup {
            entries.push(("backup", true.into()));
        }
        match entries.as_slice() {
            [(_, address)] => address.clone(),
            _ => Value::Table(entries),
        }
    }
}
