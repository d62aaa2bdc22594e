//! Settings of the CA that certificates are ordered from: `[acme]`.

use crate::config::{Acme, AcmeOrder};
use crate::named::Named;
use crate::setting::{DefaultValue, Flag, Item, Kind, settings};
use crate::{acme, address, draft, read};

settings! {
    ACME: Acme, WithGeneration;
    "directory" {
        flag: Flag::None,
        kind: Kind::Url,
        default: DefaultValue::Toml("\"https://acme-v02.api.letsencrypt.org/directory\""),
        doc: "URL of the directory of the CA (ACME, RFC 8555) that hosts with `cert = { acme = true }` get their certificates \
              from. By default it is Let's Encrypt. To order is to agree to the CA's terms of service.",
        example: "\"https://acme.example/directory\"",
        elsewhere: &["acme_ca", "ca", "server", "uri", "ca_server"],
        store: |to, value| acme::directory(value).map(|it| to.directory = it),
    }
    "directory_ca" {
        flag: Flag::None,
        kind: Kind::File,
        default: DefaultValue::Derived("the authorities that the system trusts"),
        doc: "Path of a PEM file with the authorities that have issued the certificate of `directory` itself, where it is a \
              private CA.",
        example: "\"internal-ca.pem\"",
        elsewhere: &["acme_ca_root", "ca_certificates", "ssl_verify"],
        store: |to, value| address::located_file(value).map(|it| to.directory_ca = Some(it)),
    }
    "contact" {
        flag: Flag::None,
        kind: Kind::List(Item::Text),
        default: DefaultValue::Toml("[]"),
        doc: "Mail addresses that the CA may write to.",
        example: "[\"ops@shop.example\"]",
        elsewhere: &["email", "mail", "account_email"],
        store: |to, value| read::distinct_or_none(value, acme::contact).map(|it| to.contact = it),
    }
    "eab" {
        flag: Flag::None,
        kind: Kind::File,
        default: DefaultValue::Derived("none"),
        doc: "Path of a file that binds the account to one which the CA has already (external account binding, RFC 8555, \
              section 7.3.4): the key identifier on the first line, the key in base64url on the second. It is read when the \
              account is made, and refused if other users can read it.",
        example: "\"acme.eab\"",
        elsewhere: &["external_account_key", "eab_kid", "eab_hmac", "external_account"],
        store: |to, value| address::located_file(value).map(|it| to.eab = Some(it)),
    }
    "profile" {
        flag: Flag::None,
        kind: Kind::Text,
        default: DefaultValue::Derived("none: the CA's default one"),
        doc: "Profile of certificates, one that the directory lists. It takes effect with the next certificate.",
        example: "\"shortlived\"",
        danger: "Of certificates for six days three are left when the next one is ordered: for everything that can go wrong.",
        elsewhere: &["acme_profile", "preferred_profile"],
        store: |to, value| draft::name(value).map(|it| to.profile = Some(it)),
    }
    "order" {
        flag: Flag::None,
        kind: Kind::Choice(|| AcmeOrder::ALL.iter().map(|choice| choice.name()).collect()),
        default: DefaultValue::Toml("\"here\""),
        doc: "Who orders. With `elsewhere` another host does, and this one serves the files of its state folder, which are \
              copied here by whatever the operator has: of several hosts that order the same name each gets a part of the \
              CA's limits, and the CA may ask the wrong one.",
        example: "\"elsewhere\"",
        store: |to, value| read::named(value, "way to order").map(|it| to.order = it),
    }
}
