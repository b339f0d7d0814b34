//! Encryption keys, for commands that open a store themselves.

use clap::Args;
use tenure::Keyring;

use crate::exit::Failure;
use crate::secrets;
use crate::settings::{Env, Resolved};

/// The setting that names the place of the keys.
pub(crate) const SETTING: &str = "database.encryption_keys";

/// Arguments of commands that open a store themselves.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Keys {
    /// Keys that encrypt args, results and logs: file:PATH, env:NAME or cmd:PROGRAM [env: TENURE_ENCRYPTION_KEYS]
    #[arg(long, value_name = "PLACE")]
    encryption_keys: Option<String>,
}

impl Keys {
    /// Reads the keys that the flag names, or else the settings.
    pub(crate) fn keyring(&self) -> Result<Keyring, Failure> {
        keyring(self.encryption_keys.as_deref())
    }
}

/// Reads the keys from this place, or else from that of the settings; an empty keyring if neither names one.
pub(crate) fn keyring(place: Option<&str>) -> Result<Keyring, Failure> {
    match place {
        Some(place) => keyring_at(Some(place)),
        None => keyring_at(Resolved::of_person(&Env::real()).text(SETTING)),
    }
}

/// Reads the keys from this place; an empty keyring if there is none.
pub(crate) fn keyring_at(place: Option<&str>) -> Result<Keyring, Failure> {
    let Some(place) = place else { return Ok(Keyring::default()) };
    let keys = secrets::resolve(SETTING, place)?;
    Keyring::parse(&keys).map_err(|wrong| Failure::Library(wrong.into()))
}
