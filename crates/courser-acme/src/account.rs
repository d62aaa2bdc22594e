//! The account with a CA: its key is on the disk before the CA hears of it, so that a crash leaves no account behind that
//! nobody has the key of.

use std::time::{SystemTime, UNIX_EPOCH};

use instant_acme::{Account, AccountBuilder, Key};
use rcgen::KeyPair;
use serde::Deserialize;

use crate::binding::{self, Bound};
use crate::folder::{Folder, Registration};
use crate::http::Https;
use crate::names::NameSet;
use crate::settings::Settings;
use crate::status::TxtRecord;
use crate::trouble::Trouble;

/// The account, and whether it was made just now.
pub(crate) async fn open(
    settings: &Settings,
    folder: &Folder,
    https: &Https,
) -> Result<(Account, bool), Trouble> {
    let builder = || Account::builder_with_http(Box::new(https.clone()));
    let failed = |error: instant_acme::Error| Trouble::of(&error, https.retry_after());
    let directory = settings.directory.clone();
    let known = folder.account()?;
    let (account, mut registered, is_new) = match known {
        Some((key, Registration { url: Some(url), contact, since })) => {
            let der = key_pair(&key)?.serialize_der();
            let account = builder().from_parts(url.clone(), der.as_slice().into(), directory).await;
            (account.map_err(failed)?, Registration { url: Some(url), contact, since }, false)
        }
        Some((key, _)) => {
            // A crash may have come between the account and its URL.
            let found = look_up(&key, builder(), directory.clone()).await;
            let (account, contact) = match found.map_err(failed) {
                Err(trouble) if trouble.is_answer() => make(settings, &key, https, builder()).await?,
                found => (found?, Vec::new()),
            };
            (account, Registration { contact, ..Registration::default() }, true)
        }
        None => {
            let key = KeyPair::generate().map_err(|error| Trouble::unreachable(error.to_string()))?;
            let key = key.serialize_pem();
            folder.write_account_key(&key)?;
            let (account, contact) = make(settings, &key, https, builder()).await?;
            (account, Registration { contact, ..Registration::default() }, true)
        }
    };
    if is_new {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        registered.url = Some(account.id().to_owned());
        registered.since = i64::try_from(since).unwrap_or_default();
        folder.write_account(&registered)?;
    }
    if registered.contact != settings.contact {
        let contact: Vec<&str> = settings.contact.iter().map(String::as_str).collect();
        account.update_contacts(&contact).await.map_err(failed)?;
        registered.contact.clone_from(&settings.contact);
        folder.write_account(&registered)?;
    }
    Ok((account, is_new))
}

/// The account that the CA has of this key already (RFC 8555, section 7.3.1).
async fn look_up(
    key: &str,
    builder: AccountBuilder,
    directory: String,
) -> Result<Account, instant_acme::Error> {
    let (key, pair) = library_key(key)?;
    builder.from_key((key, pair.into()), directory).await.map(|(account, _)| account)
}

/// A new account of this key, with the contact that the CA was told.
async fn make(
    settings: &Settings,
    key: &str,
    https: &Https,
    builder: AccountBuilder,
) -> Result<(Account, Vec<String>), Trouble> {
    let failed = |error: instant_acme::Error| Trouble::of(&error, https.retry_after());
    let directory = settings.directory.clone();
    let Some(external) = &settings.external else {
        let (key, pair) = library_key(key).map_err(failed)?;
        let made = builder.create_from_key((key, pair.into()), directory).await;
        return made.map(|(account, _)| (account, Vec::new())).map_err(failed);
    };
    let der = key_pair(key)?.serialize_der();
    let Bound { url, is_new } = binding::bind(settings, external, &der, https).await?;
    let account = builder.from_parts(url, der.as_slice().into(), directory).await.map_err(failed)?;
    // Of one that was there already the CA changes nothing (RFC 8555, section 7.3.1).
    Ok((account, if is_new { settings.contact.clone() } else { Vec::new() }))
}

/// A key as the library has it.
fn library_key(pem: &str) -> Result<(Key, KeyPair), instant_acme::Error> {
    let pair = KeyPair::from_pem(pem).map_err(|error| instant_acme::Error::Other(error.into()))?;
    let der = pair.serialize_der();
    Ok((Key::from_pkcs8_der(der.as_slice().into())?, pair))
}

fn key_pair(pem: &str) -> Result<KeyPair, Trouble> {
    KeyPair::from_pem(pem)
        .map_err(|error| Trouble::unreachable(format!("the account's key cannot be used: {error}")))
}

/// What of a directory the library does not show (RFC 8555, section 7.1.1).
#[derive(Deserialize)]
struct Directory {
    #[serde(default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    caa_identities: Vec<String>,
}

/// The TXT record that proves a set for good (draft-ietf-acme-dns-persist, section 4).
pub(crate) async fn record(
    settings: &Settings,
    https: &Https,
    account: &Account,
    set: &NameSet,
) -> Result<TxtRecord, Trouble> {
    let body = https.get(&settings.directory).await.map_err(Trouble::unreachable)?;
    let directory: Directory = serde_json::from_slice(&body)
        .map_err(|error| Trouble::unreachable(format!("{} is no directory: {error}", settings.directory)))?;
    let Some(issuer) = directory.meta.caa_identities.into_iter().next() else {
        return Err(Trouble::refused(
            "the CA's directory does not say what it is called in DNS (`caaIdentities`)",
        ));
    };
    let policy = if set.needs_record() { "; policy=wildcard" } else { "" };
    Ok(TxtRecord {
        name: format!("_validation-persist.{}", set.base()),
        value: format!("{issuer}; accounturi={}{policy}", account.id()),
        account: account.id().to_owned(),
    })
}
