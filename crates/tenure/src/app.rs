//! App ids, which keep the locks of different programs on one store apart.
//!
//! Set the app id when you open the store ([`OpenOptions::app`](crate::OpenOptions::app)); it stays the same in all
//! versions of the program. Singletons, reservations, rosters and writers require one.

use md5::{Digest, Md5};
use tenure_core::{AppId, AppUse, Invalid, check_program, limits};
use tenure_store::Store;

use crate::until_known::until_known;
use crate::{Error, Tenure};

/// What the names of sites end with that are served under the common domain.
const SITE_DOMAIN: &str = ".azurewebsites.net";

/// Returns the app id that WebJobs derives from a text, such as the full name of an assembly: its MD5, formatted as a
/// .NET GUID without dashes. Leave the version out of the text, because it would change the ID.
///
/// ```
/// assert_eq!(tenure::app::derived("Keeper-Unknown").as_str(), "2024f7e209f7de4409577480fff110e2");
/// ```
#[must_use]
pub fn derived(text: &str) -> AppId {
    /// A GUID keeps its first three parts with the least byte first.
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let digest = Md5::digest(text.as_bytes());
    let hex: String = ORDER.iter().map(|place| format!("{:02x}", digest[*place])).collect();
    AppId::new(&hex).expect("thirty-two hexadecimal digits are an app id")
}

/// The app id that the Functions host makes from a site name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfSite {
    /// The app id.
    pub app: AppId,
    /// `true` if the name was truncated, so that sites with the same beginning share it.
    pub is_cut: bool,
}

/// Returns the app id that the Functions host makes from a site name: without the common domain, truncated to 32
/// characters, in lower case, without trailing dashes.
///
/// # Errors
/// Refuses a name that gives no valid app id.
pub fn of_site(name: &str) -> Result<OfSite, Invalid> {
    let small = name.to_lowercase();
    let slot = small.strip_suffix(SITE_DOMAIN).unwrap_or(&small);
    let cut: String = slot.chars().take(limits::APP_ID_BYTES).collect();
    let app = AppId::new(cut.trim_end_matches('-'))?;
    Ok(OfSite { app, is_cut: slot.chars().count() > limits::APP_ID_BYTES })
}

impl Tenure {
    /// Returns this handle for a program with an app id, and claims the app id: a second program with the same one is
    /// refused, because they would share their locks. Instances and versions of one program share its name.
    ///
    /// [`OpenOptions::app`](crate::OpenOptions::app) does this when a store is opened.
    ///
    /// # Errors
    /// [`Error::AppTaken`] if another program uses the app id; an invalid name; or a fault.
    pub async fn as_app(self, app: &str, program: &str) -> Result<Self, Error> {
        let app = AppId::new(app)?;
        check_program(program)?;
        let host = self.draw_host();
        match until_known(|| self.store().claim_app(&app, program, host)).await? {
            Ok(claimed) => Ok(self.with_app(claimed)),
            Err(other) => {
                let by = Box::new(other);
                Err(Error::AppTaken { program: program.to_owned(), by })
            }
        }
    }

    /// Returns the app id of this program, if it set one.
    #[must_use]
    pub fn app(&self) -> Option<&AppId> {
        self.claimed().map(|claimed| &claimed.app)
    }

    /// The app id, which `what` cannot do without.
    pub(crate) fn need_app(&self, what: &str) -> Result<&AppId, Error> {
        self.app().ok_or_else(|| {
            let Nameless { program, others } = self.nameless();
            Error::NoApp { what: what.to_owned(), program, others }
        })
    }
}

/// What a program that said no app id is told if it needs one.
#[derive(Debug, Clone)]
pub(crate) struct Nameless {
    pub(crate) program: String,
    pub(crate) others: Vec<AppUse>,
}

impl Nameless {
    /// Looks who else is there.
    pub(crate) async fn look(store: &dyn Store, program: Option<String>) -> Self {
        // Nothing but the words of a later message depends on it: a store that does not answer is told by
        // the first call that needs it.
        let others = store.apps().await.unwrap_or_default();
        Self { others, ..Self::alone(program) }
    }

    pub(crate) fn alone(program: Option<String>) -> Self {
        let program = program.or_else(|| this_program().ok()).unwrap_or_default();
        Self { program, others: Vec::new() }
    }
}

/// Says again that the program uses its app id, so that it is not taken for one that was given up.
pub(crate) async fn claim_again(store: &dyn Store, claimed: &AppUse) {
    // If it is not heard, it is said again soon; it counts for a month.
    if let Ok(Err(other)) = store.claim_app(&claimed.app, &claimed.program, claimed.host).await {
        tracing::error!(
            app = %claimed.app, program = claimed.program, other = other.program,
            "another program uses the same app id, so both share their locks",
        );
    }
}

/// The name of a program that said none.
pub(crate) fn this_program() -> Result<String, Invalid> {
    let path = std::env::current_exe().ok();
    let file = path.as_deref().and_then(|path| path.file_name()).and_then(|name| name.to_str());
    file.and_then(program_of).map(str::to_owned).ok_or_else(|| {
        Invalid::new("program", "an executable without a name", "a name set with OpenOptions::program")
    })
}

/// The name of the program in the file of this name. Of what changes with a version nothing is in it: not
/// the folder, not a version at its end, and not what Linux adds when an executable was replaced while it
/// runs.
fn program_of(file: &str) -> Option<&str> {
    let file = file.strip_suffix(" (deleted)").unwrap_or(file);
    let file = file.strip_suffix(".exe").or_else(|| file.strip_suffix(".EXE")).unwrap_or(file);
    let begins_version = |(at, sign): (usize, char)| {
        let behind = file[at + 1..].trim_start_matches('v');
        (matches!(sign, '-' | '_') && is_version(behind)).then_some(at)
    };
    let end = file.char_indices().find_map(begins_version).unwrap_or(file.len());
    Some(&file[..end]).filter(|name| !name.is_empty())
}

/// Whether text begins with numbers and dots between them, such as `1.2` or `1.2.3-rc.1`. A single number
/// may as well tell two programs apart.
fn is_version(text: &str) -> bool {
    let numbers = text.split(['-', '+', '_']).next().unwrap_or_default();
    let mut parts = numbers.split('.');
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    numbers.contains('.') && parts.all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T035: a new version of a program is the same program, wherever it lies and however its file is named.
    #[test]
    fn a_program_is_named_without_what_changes_with_its_version() {
        for file in [
            "billing",
            "billing.exe",
            "billing (deleted)",
            "billing-1.2.3",
            "billing-v1.3.0",
            "billing_2.0",
            "billing-1.2.3-rc.1",
            "billing-1.2.3-x86_64-unknown-linux-gnu",
            "billing-10.0.1.exe",
        ] {
            assert_eq!(program_of(file), Some("billing"), "{file}");
        }
        for file in
            ["billing-worker", "billing-2", "billing.net", "billing-v2", "x86_64", "1.2.3", "billing-1."]
        {
            assert_eq!(program_of(file), Some(file), "{file}");
        }
        assert_eq!(program_of(""), None);
        assert_eq!(program_of("-1.2"), None);
    }
}
