//! Encryption keys, for commands that open a store themselves.

use std::path::Path;

use clap::Args;
use tenure::{Keyring, OpenOptions};

use crate::exit::Failure;
use crate::secrets;
use crate::settings::{Env, Resolved};

/// The setting that names the place of the keys.
const SETTING: &str = "database.encryption_keys";
/// The setting that allows plain text in an encrypted store.
const WITHOUT: &str = "database.without_encryption";

/// Arguments of commands that open a store themselves.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Keys {
    /// Keys that encrypt args, results and logs: file:PATH, env:NAME or cmd:PROGRAM [env: TENURE_ENCRYPTION_KEYS]
    #[arg(long, value_name = "PLACE")]
    encryption_keys: Option<String>,
    /// Load no encryption keys; store new values as plain text
    #[arg(long, conflicts_with = "encryption_keys")]
    without_encryption: bool,
}

/// Encryption of a store that this program opens.
#[derive(Debug, Clone)]
pub(crate) enum AtRest {
    /// With these keys. If there are none, an encrypted store is not opened.
    With(Keyring),
    /// Without keys, even if the store is encrypted.
    Without,
}

impl Keys {
    /// Reads the keys that the flag names, or else the settings.
    pub(crate) fn at_rest(&self) -> Result<AtRest, Failure> {
        at_rest(self.encryption_keys.as_deref(), self.without_encryption, None)
    }
}

/// Reads the keys from this place, or else from that of the settings, with the file of `--config` if there is one.
pub(crate) fn at_rest(place: Option<&str>, without: bool, config: Option<&Path>) -> Result<AtRest, Failure> {
    match place {
        _ if without => Ok(AtRest::Without),
        Some(place) => AtRest::of(Some(place)),
        None => AtRest::of_settings(&Resolved::of_store(&Env::real(), config)?),
    }
}

impl AtRest {
    /// Returns the encryption that these settings name.
    pub(crate) fn of_settings(settings: &Resolved) -> Result<Self, Failure> {
        match (settings.text(SETTING), settings.is_on(WITHOUT)) {
            // Do not guess: one settings file may turn encryption off while another names keys.
            (Some(_), true) => {
                Err(Failure::Invalid(format!("{SETTING} and {WITHOUT} are both set; remove one")))
            }
            (None, true) => Ok(Self::Without),
            (place, false) => Self::of(place),
        }
    }

    fn of(place: Option<&str>) -> Result<Self, Failure> {
        let Some(place) = place else { return Ok(Self::With(Keyring::default())) };
        let keys = secrets::resolve(SETTING, place)?;
        Keyring::parse(&keys).map(Self::With).map_err(|wrong| Failure::Library(wrong.into()))
    }

    /// Returns options that open a store in this way.
    pub(crate) fn apply(&self, options: OpenOptions) -> OpenOptions {
        match self {
            Self::With(keys) => options.keyring(keys.clone()),
            Self::Without => options.allow_plaintext(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_no_encryption_exclude_each_other() {
        let said = |keys: bool, without: bool| {
            let mut settings = Resolved::default();
            let key = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
            settings.or_else(SETTING, keys.then(|| key.to_owned()), "a");
            settings.or_else(WITHOUT, without.then(|| "true".to_owned()), "b");
            AtRest::of_settings(&settings)
        };
        assert!(matches!(said(true, false), Ok(AtRest::With(keys)) if keys.current() == Some("k1")));
        assert!(matches!(said(false, false), Ok(AtRest::With(keys)) if keys.is_empty()));
        assert!(matches!(said(false, true), Ok(AtRest::Without)));
        assert_eq!(said(true, true).unwrap_err().code(), 7);
    }
}
