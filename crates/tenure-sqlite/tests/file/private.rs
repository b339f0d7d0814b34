//! Access to a database file: only its owner can read it, though the usual umask lets every user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tenure_sqlite::Options;
use tenure_store::{Jobs, Store};

use crate::given::{file, new_job, open_live, runtime};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_file_its_log_and_its_backup_are_readable_by_their_owner_alone() {
    let (directory, file) = file();
    let copy = directory.path().join("copy.db");
    runtime().block_on(async {
        let store = open_live(&file, Options::default());
        store.enqueue(vec![new_job(1)]).await.unwrap();
        store.backup(&copy).await.unwrap();
        for entry in fs::read_dir(directory.path()).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
        assert!(directory.path().join("copy.db").exists());
        store.close().await.unwrap();
    });
}

/// Several users in one group share such a file on purpose.
#[test]
fn a_file_with_other_permissions_keeps_them() {
    let (_directory, file) = file();
    runtime().block_on(async {
        open_live(&file, Options::default()).close().await.unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o660)).unwrap();
        let store = open_live(&file, Options::default());
        store.enqueue(vec![new_job(1)]).await.unwrap();
        for suffix in ["", "-wal", "-shm"] {
            let path = format!("{}{suffix}", file.display());
            assert_eq!(mode(Path::new(&path)), 0o660, "{path}");
        }
        store.close().await.unwrap();
    });
}

#[test]
fn a_file_that_every_user_can_open_is_a_caution_with_the_command_that_ends_it() {
    let (directory, file) = file();
    runtime().block_on(async {
        let store = open_live(&file, Options::default());
        let open_to = |folder, file_mode| {
            fs::set_permissions(directory.path(), PermissionsExt::from_mode(folder)).unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(file_mode)).unwrap();
            store.about().cautions.pop().map(|caution| caution.to_string()).unwrap_or_default()
        };
        let (path, told) = (file.display(), open_to(0o755, 0o644));
        assert!(
            told.contains(&format!("can open {path} (mode 644): run `chmod o-rwx {path} {path}-*`")),
            "{told}"
        );
        assert_eq!(open_to(0o755, 0o660), "", "a group is no accident");
        assert_eq!(open_to(0o750, 0o644), "", "its folder protects it");
        store.close().await.unwrap();
    });
}
