//! What the disk itself can do, without which no durable figure means anything.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::meter::now;

/// How often in a second this disk makes a page durable, one after the other.
pub(crate) fn fsyncs_per_s(folder: &Path, span: Duration) -> std::io::Result<f64> {
    let path = folder.join("fsync-probe");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let (began, mut done) = (now(), 0_u32);
    let seconds = loop {
        write_durably(&mut file)?;
        done += 1;
        let since = now().duration_since(began);
        if since >= span {
            break since.as_secs_f64();
        }
    };
    std::fs::remove_file(path)?;
    Ok(f64::from(done) / seconds)
}

/// Appends, as a log does.
fn write_durably(file: &mut File) -> std::io::Result<()> {
    file.write_all(&[7; 4096])?;
    file.sync_data()
}

/// The file system and device of a folder, as far as the system tells.
pub(crate) fn name_of(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    mount_of(&folder, &mounts)
}

/// The mount with the longest path that leads to the folder.
fn mount_of(folder: &Path, mounts: &str) -> Option<String> {
    let parts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let leading = parts.filter(|parts| parts.len() > 2 && folder.starts_with(parts[1]));
    let nearest = leading.max_by_key(|parts| parts[1].len())?;
    Some(format!("{} on {}", nearest[2], nearest[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_is_the_disk() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\n/dev/b /run/x xfs rw 0 0\n";
        assert_eq!(mount_of(Path::new("/run/x/y"), mounts).unwrap(), "xfs on /dev/b");
        assert_eq!(mount_of(Path::new("/srv"), mounts).unwrap(), "ext4 on /dev/a");
        assert_eq!(mount_of(Path::new("/srv"), ""), None);
    }

    #[test]
    fn the_probe_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert!(fsyncs_per_s(folder.path(), Duration::from_millis(1)).unwrap() > 0.0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
