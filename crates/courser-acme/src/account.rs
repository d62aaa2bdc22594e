//! The account with a CA: its key is on the disk before the CA hears of it, so that a crash leaves no account behind that
//! nobody has the key of.

use std::time::{SystemTime, UNIX_EPOCH};

use instant_acme::{Account, AccountBuilder, ExternalAccountKey, Key, NewAccount};
use rcgen::KeyPair;
use serde::Deserialize;

use crate::folder::{Folder, Registration};
use crate::http::Https;
use crate::names::NameSet;
use crate::settings::{ExternalAccount, Settings};
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
            let account = register(&key, builder(), directory).await.map_err(failed)?;
            (account, Registration::default(), true)
        }
        None => match &settings.external {
            Some(external) => {
                let account = bind(settings, external, folder, builder()).await?.map_err(failed)?;
                (account, Registration { contact: settings.contact.clone(), ..Registration::default() }, true)
            }
            None => {
                let key = KeyPair::generate().map_err(|error| Trouble::unreachable(error.to_string()))?;
                let key = key.serialize_pem();
                folder.write_account_key(&key)?;
                let account = register(&key, builder(), directory).await.map_err(failed)?;
                (account, Registration::default(), true)
            }
        },
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

/// The account of this key, made if the CA has none: to ask twice makes one (RFC 8555, section 7.3.1).
async fn register(
    key: &str,
    builder: AccountBuilder,
    directory: String,
) -> Result<Account, instant_acme::Error> {
    let pair = KeyPair::from_pem(key).map_err(|error| instant_acme::Error::Other(error.into()))?;
    let der = pair.serialize_der();
    let key = (Key::from_pkcs8_der(der.as_slice().into())?, pair.into());
    builder.create_from_key(key, directory).await.map(|(account, _)| account)
}

/// A new account that belongs to one which there is. The library makes the key itself: of a crash before the CA's answer is
/// written an account is left that has no certificate.
async fn bind(
    settings: &Settings,
    external: &ExternalAccount,
    folder: &Folder,
    builder: AccountBuilder,
) -> Result<Result<Account, instant_acme::Error>, Trouble> {
    let contact: Vec<&str> = settings.contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let binding = ExternalAccountKey::new(external.id.clone(), &external.key);
    let (account, credentials) = match builder.create(&new, settings.directory.clone(), Some(&binding)).await
    {
        Ok(made) => made,
        Err(error) => return Ok(Err(error)),
    };
    let der = credentials.private_key().secret_pkcs8_der();
    let key = KeyPair::try_from(der).map_err(|error| Trouble::unreachable(error.to_string()))?;
    folder.write_account_key(&key.serialize_pem())?;
    Ok(Ok(account))
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
