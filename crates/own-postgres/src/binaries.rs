//! The installed binaries.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Error;

/// Where Debian puts them, one directory a version.
const DEBIAN: &str = "/usr/lib/postgresql";
const OLDEST: u32 = 15;
/// Names the directory of the binaries to take, in place of the newest ones that are installed.
const CHOSEN: &str = "OWN_POSTGRES_BIN";

/// The directory of the chosen binaries, or of the newest ones; installs some if there are none.
pub(crate) fn find_or_install() -> Result<PathBuf, Error> {
    if let Some(chosen) = std::env::var_os(CHOSEN).filter(|chosen| !chosen.is_empty()) {
        return are_there(PathBuf::from(chosen));
    }
    let _alone = one_at_a_time()?;
    if let Some(found) = find() {
        return Ok(found);
    }
    install()?;
    find().ok_or_else(|| Error::NotInstalled("the package brought no server".to_owned()))
}

/// Where the program of a pooler is; installs it if it is missing.
pub(crate) fn find_or_install_pooler() -> Result<PathBuf, Error> {
    let find = || {
        let places = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];
        places.iter().map(PathBuf::from).find(|place| place.exists())
    };
    let _alone = one_at_a_time()?;
    if let Some(found) = find() {
        return Ok(found);
    }
    may_install("pgbouncer")?;
    apt(&["update", "-q"])?;
    apt(&["install", "-q", "-y", "--no-install-recommends", "pgbouncer"])?;
    find().ok_or_else(|| Error::NotInstalled("the package brought no pgbouncer".to_owned()))
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|said| said.stdout.trim_ascii() == b"0")
}

fn are_there(bin: PathBuf) -> Result<PathBuf, Error> {
    let missing = ["initdb", "pg_ctl"].into_iter().find(|program| !bin.join(program).exists());
    match missing {
        None => Ok(bin),
        Some(program) => {
            Err(Error::NotInstalled(format!("{CHOSEN} names {}, where there is no {program}", bin.display())))
        }
    }
}

fn find() -> Option<PathBuf> {
    in_debian().or_else(in_path)
}

fn in_debian() -> Option<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).ok()?;
    let version = |name: &std::ffi::OsStr| name.to_str()?.parse::<u32>().ok();
    versions
        .filter_map(|entry| entry.ok())
        .filter_map(|entry| Some((version(&entry.file_name())?, entry.path().join("bin"))))
        .filter(|(version, bin)| {
            *version >= OLDEST && bin.join("initdb").exists() && bin.join("pg_ctl").exists()
        })
        .max()
        .map(|(_, bin)| bin)
}

fn in_path() -> Option<PathBuf> {
    let said = Command::new("pg_config").arg("--bindir").stderr(Stdio::null()).output().ok()?;
    let bin = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
    let version = Command::new(bin.join("initdb")).arg("--version").output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let number = version.split_whitespace().last()?.split('.').next()?.parse::<u32>().ok()?;
    (number >= OLDEST && bin.join("pg_ctl").exists()).then_some(bin)
}

/// Installs Debian's package, without letting it make or start a cluster of its own.
fn install() -> Result<(), Error> {
    may_install("postgresql")?;
    apt(&["update", "-q"])?;
    apt(&["install", "-q", "-y", "--no-install-recommends", "postgresql-common"])?;
    let _ = std::fs::write("/etc/postgresql-common/createcluster.conf", "create_main_cluster = false\n");
    apt(&["install", "-q", "-y", "--no-install-recommends", "postgresql"])
}

/// Tests run side by side, and a package manager serves one at a time: whoever comes second finds what the first has
/// installed. Only root may install. It is free again when what is answered is dropped, or when its process has ended.
pub(crate) fn one_at_a_time() -> Result<Option<File>, Error> {
    if !is_root() {
        return Ok(None);
    }
    let place = std::env::temp_dir().join("own-postgres.lock");
    let file = File::options().create(true).append(true).open(&place);
    let locked = file.and_then(|file| file.lock().map(|()| file));
    locked
        .map(Some)
        .map_err(|error| Error::NotInstalled(format!("{} cannot be locked: {error}", place.display())))
}

fn may_install(package: &str) -> Result<(), Error> {
    if is_root() {
        return Ok(());
    }
    Err(Error::NotInstalled(format!("only root may install it; install the package `{package}`")))
}

pub(crate) fn apt(args: &[&str]) -> Result<(), Error> {
    // Somebody else on this machine may be installing something, too.
    let said = Command::new("apt-get")
        .args(["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=5"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output();
    match said {
        Ok(said) if said.status.success() => Ok(()),
        Ok(said) => Err(Error::NotInstalled(String::from_utf8_lossy(&said.stderr).trim().to_owned())),
        Err(error) => Err(Error::NotInstalled(format!("apt-get: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_binaries_that_are_not_there_are_told_by_name() {
        let error = are_there(PathBuf::from("/no/such/place")).unwrap_err();
        assert!(error.to_string().contains("OWN_POSTGRES_BIN names /no/such/place"), "{error}");
    }
}
