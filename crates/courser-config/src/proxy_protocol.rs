//! The PROXY protocol: which header backends get, and from whom one is accepted.

use crate::fleet::{self, Network};
use crate::named::named;
use crate::near::suggest;
use crate::problem::{Problem, Problems};
use crate::read::{self, wrong_kind};
use crate::value::{Literal, Value};

named! {
    /// Which PROXY protocol header the backend gets before the first byte.
    #[derive(Default)]
    SendProxy {
        /// None.
        #[default]
        Off = "off",
        /// The text form.
        V1 = "v1",
        /// The binary form with the addresses alone.
        V2Addresses = "v2-addresses",
        /// The binary form, with TLS details.
        V2 = "v2",
        /// The binary form, with TLS details and the client's certificate.
        V2ClientCert = "v2-client-cert",
    }
}

/// Sources that have to send a PROXY header; all others may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptProxy {
    /// The networks that they are in.
    pub networks: Vec<Network>,
    /// Whether they are those who connect to a unix socket of the listener.
    pub unix: bool,
}

/// Reads `{ from = ["10.0.0.0/24", "unix"] }`.
pub(crate) fn accept(value: &Value) -> Result<AcceptProxy, Problems> {
    const UNIX: &str = "unix";
    let Literal::Table(table) = &value.literal else {
        return Err(wrong_kind(value, "a table such as `{ from = [\"10.0.0.0/24\"] }`"));
    };
    if let Some(entry) = table.entries.iter().find(|entry| entry.key != "from") {
        let message = format!("unknown key `{}`", entry.key);
        return Err(Problem::at(&entry.key_origin, message, Some(suggest(&entry.key, ["from"]))).into());
    }
    let Some(from) = table.get("from") else {
        let help = "add `from` with the networks of whoever sends headers, or \"unix\"";
        return Err(
            Problem::at(&value.origin, "it does not say who sends a header", Some(help.into())).into()
        );
    };
    let source = |item: &Value| match &item.literal {
        Literal::Text(text) if text == UNIX => Ok(None),
        _ => fleet::network(item).map(Some),
    };
    let sources = read::distinct(from, source)?;
    let unix = sources.contains(&None);
    Ok(AcceptProxy { networks: sources.into_iter().flatten().collect(), unix })
}
