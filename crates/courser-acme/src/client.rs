//! A CA and our account with it.

use instant_acme::Account;

use crate::account;
use crate::folder::Folder;
use crate::http::Https;
use crate::plan::Window;
use crate::settings::Settings;
use crate::trouble::Trouble;

/// A CA with which there is an account.
pub(crate) struct Ca {
    pub(crate) account: Account,
    pub(crate) https: Https,
    /// The account was made just now: no record can name it yet.
    pub(crate) is_new: bool,
}

impl Ca {
    /// Reads the directory, and makes the account if there is none.
    pub(crate) async fn connect(settings: &Settings, folder: &Folder) -> Result<Self, Trouble> {
        let https = Https::new(settings.directory_ca.as_ref()).map_err(Trouble::unreachable)?;
        let (account, is_new) = account::open(settings, folder, &https).await?;
        Ok(Self { account, https, is_new })
    }

    pub(crate) fn trouble(&self, error: &instant_acme::Error) -> Trouble {
        Trouble::of(error, self.https.retry_after())
    }

    /// Whether the CA has the profile, where one is wanted.
    pub(crate) fn check_profile(&self, profile: Option<&str>) -> Result<(), Trouble> {
        let Some(profile) = profile else { return Ok(()) };
        let mut known: Vec<&str> = self.account.profiles().map(|known| known.name).collect();
        if known.contains(&profile) {
            return Ok(());
        }
        known.sort_unstable();
        let has = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Trouble::refused(format!("the CA has no profile `{profile}`; it has {has}")))
    }

    /// When the CA wants a certificate to be renewed, and for how many seconds not to ask again; no window where it does not
    /// say such things.
    pub(crate) async fn window(&self, id: &(String, String)) -> Result<(Option<Window>, u64), Trouble> {
        let id = certificate_id(id);
        match self.account.renewal_info(&id).await {
            Ok((info, pause)) => {
                let window = info.suggested_window;
                let window =
                    Window { begin: window.start.unix_timestamp(), end: window.end.unix_timestamp() };
                Ok((Some(window), pause.as_secs()))
            }
            Err(instant_acme::Error::Unsupported(_)) => Ok((None, crate::plan::ASK_AGAIN)),
            Err(error) => Err(self.trouble(&error)),
        }
    }
}

pub(crate) fn certificate_id((issuer, serial): &(String, String)) -> instant_acme::CertificateIdentifier<'_> {
    instant_acme::CertificateIdentifier {
        authority_key_identifier: issuer.as_str().into(),
        serial: serial.as_str().into(),
    }
}
