//! Unpacking a zip of programs, which may mean no good.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipFileHeaderRecord};

use super::links::leads_out;

/// Files and folders of one package.
const MOST_ENTRIES: u64 = 20_000;
/// Bytes of all its files together, unpacked.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes of a name.
const NAME_BYTES: usize = 1_024;
/// How deep its folders may lie in one another.
const DEEPEST: usize = 64;
/// Bytes of what a link says.
const LINK_BYTES: u64 = 4_096;
/// The kind of an entry among the bits of its mode, where the packer has said one.
const KIND: u32 = 0o170_000;
const ORDINARY: [u32; 3] = [0, 0o100_000, 0o040_000];

type Archive = ZipArchive<rawzip::FileReader>;

/// What was unpacked so far.
struct Unpacking<'a> {
    archive: &'a Archive,
    to: &'a Path,
    /// Made when all files are there: nothing is ever written through a link.
    links: Vec<(PathBuf, PathBuf)>,
}

/// Unpacks a zip into a folder of its own. What is packed decides about nothing beyond that folder.
///
/// # Errors
/// What is no zip, what is not as it says, and what is beyond the bounds, each with its name. What is unpacked by then stays there.
pub(super) fn unpack(zip: &Path, to: &Path) -> io::Result<()> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(File::open(zip)?, &mut buffer).map_err(io::Error::other)?;
    check_size(&archive, &mut buffer)?;
    fs::create_dir_all(to)?;
    let mut unpacking = Unpacking { archive: &archive, to, links: Vec::new() };
    let mut entries = archive.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(io::Error::other)? {
        let raw = entry.file_path();
        let name = place(raw.as_bytes()).map_err(|why| {
            io::Error::other(format!("{:?} {why}", String::from_utf8_lossy(raw.as_bytes())))
        })?;
        let done = unpacking.entry(&entry, &name);
        done.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", name.display())))?;
    }
    for (path, target) in &unpacking.links {
        symlink(target, path)?;
    }
    // Only now: a link may lead through a later one.
    match unpacking.links.iter().find(|(path, _)| leads_out(to, path)) {
        None => Ok(()),
        Some((path, target)) => {
            let (path, target) = (path.strip_prefix(to).unwrap_or(path).display(), target.display());
            refuse(format!("{path}: the link leads out of the package, to {target}"))
        }
    }
}

/// Refuses a package that declares too many entries or too many bytes, before anything is unpacked.
fn check_size(archive: &Archive, buffer: &mut [u8]) -> io::Result<()> {
    let (mut entries, mut number, mut bytes) = (archive.entries(buffer), 0, 0_u64);
    while let Some(entry) = entries.next_entry().map_err(io::Error::other)? {
        number += 1;
        bytes = bytes.saturating_add(entry.uncompressed_size_hint());
        if number > MOST_ENTRIES {
            return refuse(format!("more than {MOST_ENTRIES} files and folders"));
        }
        if bytes > MOST_BYTES {
            return refuse(format!("the package is larger than {} MiB unpacked", MOST_BYTES >> 20));
        }
    }
    Ok(())
}

impl Unpacking<'_> {
    fn entry(&mut self, entry: &ZipFileHeaderRecord<'_>, name: &Path) -> io::Result<()> {
        let (path, mode) = (self.to.join(name), entry.mode());
        if entry.file_path().as_bytes().ends_with(b"/") || entry.file_path().as_bytes().ends_with(b"\\") {
            return fs::create_dir_all(path);
        }
        if entry.flags().is_encrypted() {
            return refuse("encrypted");
        }
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        if mode.is_symlink() {
            let mut target = Vec::new();
            self.read(entry, |data| {
                data.take(LINK_BYTES + 1).read_to_end(&mut target).map(|read| read as u64)
            })?;
            let target = PathBuf::from(String::from_utf8(target).map_err(io::Error::other)?);
            if target.as_os_str().len() as u64 > LINK_BYTES {
                return refuse(format!("the target of the link has more than {LINK_BYTES} bytes"));
            }
            self.links.push((path, target));
            return Ok(());
        }
        if !ORDINARY.contains(&(mode.value() & KIND)) {
            return refuse("neither a file, a folder nor a link");
        }
        // A name that comes twice would be whatever came last.
        let mut file = File::create_new(&path)?;
        self.read(entry, |data| io::copy(data, &mut file))?;
        let is_program = mode.permissions() & 0o111 != 0;
        fs::set_permissions(path, Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))
    }

    /// Passes the unpacked data to `read`. Fails if its size or checksum differs from the package's entry.
    fn read(
        &self,
        entry: &ZipFileHeaderRecord<'_>,
        read: impl FnOnce(&mut dyn Read) -> io::Result<u64>,
    ) -> io::Result<u64> {
        let packed = self.archive.get_entry(entry.wayfinder()).map_err(io::Error::other)?;
        match entry.compression_method() {
            CompressionMethod::STORE => read(&mut packed.verifying_reader(packed.reader())),
            CompressionMethod::DEFLATE => {
                read(&mut packed.verifying_reader(DeflateDecoder::new(packed.reader())))
            }
            other => refuse(format!("compressed with {other:?}; expected deflated or stored")),
        }
    }
}

/// Where an entry goes, below the folder of the package. Packers on Windows write their own separators.
fn place(name: &[u8]) -> Result<PathBuf, String> {
    let name = std::str::from_utf8(name).map_err(|_| "is not UTF-8".to_owned())?;
    if name.len() > NAME_BYTES {
        return Err(format!("has {} bytes; expected at most {NAME_BYTES}", name.len()));
    }
    let mut path = PathBuf::new();
    for part in name.split(['/', '\\']) {
        match part {
            "" if !path.as_os_str().is_empty() => {}
            "." => {}
            "" | ".." => return Err("leads out of the package".to_owned()),
            part if part.contains(char::is_control) => return Err("contains a control character".to_owned()),
            part if part.ends_with(':') => return Err("names a drive".to_owned()),
            part => path.push(part),
        }
    }
    match path.components().count() {
        0 => Err("is empty".to_owned()),
        deep if deep > DEEPEST => Err(format!("is nested {deep} deep; expected at most {DEEPEST}")),
        _ => Ok(path),
    }
}

fn refuse<T>(why: impl Into<String>) -> io::Result<T> {
    Err(io::Error::other(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_below_the_package_or_refused() {
        for (name, expected) in [
            ("a/b.sh", "a/b.sh"),
            (r"triggered\a\run.cmd", "triggered/a/run.cmd"),
            ("./a//b/", "a/b"),
            ("-c.sh", "-c.sh"),
            ("a..b/...", "a..b/..."),
        ] {
            assert_eq!(place(name.as_bytes()).unwrap(), Path::new(expected), "{name}");
        }
        let (long, deep) = ("x".repeat(2_000), "x/".repeat(70));
        for name in [
            "/etc/passwd",
            "../x",
            "a/../../x",
            r"..\x",
            r"a\..\x",
            r"\\host\x",
            "C:/x",
            "",
            ".",
            "a\0b",
            "a\nb",
            &long,
            &deep,
        ] {
            assert!(place(name.as_bytes()).is_err(), "{name:?}");
        }
        assert!(place(b"\xff").is_err());
    }
}
