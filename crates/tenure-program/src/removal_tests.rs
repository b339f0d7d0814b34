use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::mkdirat;

use super::*;

/// Levels that overflow the stack of a thread in a recursive removal, if its limit of open files does not stop it first.
const LEVELS: u32 = 20_000;

/// Returns a folder in memory where there is one: a disk takes long to remove as many folders.
fn root() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let root = root();
    let top = root.path().join("top");
    fs::create_dir(&top).unwrap();
    (root, top)
}

/// Creates folders in one another, and returns the innermost one.
fn nest(top: &Path, levels: u32) -> OwnedFd {
    (0..levels).fold(open_folder(CWD, top).unwrap(), |above, _| deeper(&above).unwrap())
}

fn deeper(above: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    mkdirat(above, "n", Mode::RWXU)?;
    openat(above, "n", FOLDER, Mode::empty())
}

#[test]
fn folders_in_one_another_are_removed_at_any_depth() {
    let (root, top) = folder();
    nest(&top, LEVELS);
    fs::write(top.join("n/n/n/file"), "").unwrap();
    remove_folder(&top).unwrap();
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    remove_folder(&top).unwrap();
    // As a host and the supervisor of a program do it.
    let scratch = ScratchFolder::from(tempfile::tempdir_in(root.path()).unwrap());
    nest(scratch.path(), LEVELS);
    drop(scratch);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn a_pass_moves_folders_that_are_deeper_than_it_may_open() {
    let (_root, top) = folder();
    nest(&top, 1_000);
    let innermost = nest(&top.join("n"), 0);
    let bounds = Bounds { depth: 3, ..Bounds::default() };
    let top_folder = Dir::new(open_folder(CWD, &top).unwrap()).unwrap();
    let mut removal = Removal { top: top_folder, bounds, failed: None };
    removal.pass();
    // Each pass moves what is deeper than it may open, and removes what is not.
    assert!(removal.bounds.moves < bounds.moves);
    drop(innermost);
    bounds.remove(&top).unwrap();
    assert!(!top.exists());
}

#[test]
fn a_program_cannot_keep_a_folder_by_taking_its_next_name() {
    for is_file in [false, true] {
        let (_root, top) = folder();
        for level in 1..100 {
            let number = fstat(nest(&top.join("n/".repeat(level - 1)), 1)).unwrap().st_ino;
            let taken = top.join(format!(".removed-{number}"));
            match is_file {
                true => fs::write(taken, "").unwrap(),
                false => fs::create_dir_all(taken.join("below")).unwrap(),
            }
        }
        remove_folder(&top).unwrap();
        assert!(!top.exists());
    }
}

/// With a name that a program can predict, the removal would move a folder onto the one that holds it.
#[test]
fn a_program_cannot_keep_a_folder_by_giving_its_next_name_to_one_above_it() {
    let (_root, top) = folder();
    let number = fstat(nest(&top, 33)).unwrap().st_ino;
    fs::rename(top.join("n"), top.join(format!(".removed-{number}"))).unwrap();
    remove_folder(&top).unwrap();
    assert!(!top.exists());
}

#[test]
fn folders_that_cannot_be_moved_are_removed_where_they_are() {
    let (_root, top) = folder();
    nest(&top, 200);
    Bounds { moves: 0, ..Bounds::default() }.remove(&top).unwrap();
    assert!(!top.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn an_entry_that_cannot_be_removed_leaves_only_itself() {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

    let root = tempfile::tempdir().unwrap();
    let top = root.path().join("top");
    fs::create_dir_all(top.join("kept")).unwrap();
    // Entries before and after it, in any order of the file system.
    for number in 0..50 {
        fs::create_dir(top.join(format!("{number}"))).unwrap();
        fs::write(top.join(format!("{number}/file")), "").unwrap();
        fs::write(top.join(format!("kept/{number}")), "").unwrap();
    }
    nest(&top, 100);
    let kept = fs::File::open(top.join("kept/0")).unwrap();
    let flags = ioctl_getflags(&kept).unwrap_or(IFlags::empty());
    if let Err(why) = ioctl_setflags(&kept, flags | IFlags::IMMUTABLE) {
        println!("skipped: cannot make a file immutable: {why}");
        return;
    }
    let failed = remove_folder(&top).map_err(|error| error.kind());
    let left = |path: &Path| fs::read_dir(path).map(Iterator::count);
    let left = (left(&top), left(&top.join("kept")));
    ioctl_setflags(&kept, flags).unwrap();
    assert_eq!(failed, Err(io::ErrorKind::PermissionDenied));
    assert_eq!((left.0.unwrap(), left.1.unwrap()), (1, 1));
    remove_folder(&top).unwrap();
    assert!(!top.exists());
}

#[test]
fn links_are_removed_and_not_followed() {
    let (root, top) = folder();
    let kept = root.path().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "").unwrap();
    fs::set_permissions(&kept, Permissions::from_mode(0o500)).unwrap();
    symlink(&kept, top.join("link")).unwrap();
    symlink("..", top.join("up")).unwrap();
    remove_folder(&top).unwrap();
    symlink(&kept, &top).unwrap();
    remove_folder(&top).unwrap();
    assert!(top.symlink_metadata().is_err() && kept.join("file").exists());
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o500);
}

#[test]
fn folders_that_their_owner_has_no_rights_to_are_removed() {
    let (_root, top) = folder();
    let below = top.join("below");
    for mode in [0o555, 0o400, 0o000] {
        fs::create_dir_all(below.join("deeper")).unwrap();
        fs::write(below.join("file"), "").unwrap();
        for path in [below.join("deeper"), below.clone(), top.clone()] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        // Root can open it in any case; other users need the rights first.
        give_access(CWD, &top).unwrap();
        assert_eq!(top.metadata().unwrap().permissions().mode() & 0o700, 0o700);
        drop(open_folder(CWD, &below).unwrap());
        assert_eq!(below.metadata().unwrap().permissions().mode() & 0o700, 0o700);
        fs::set_permissions(&top, Permissions::from_mode(mode)).unwrap();
        remove_folder(&top).unwrap();
        assert!(!top.exists());
    }
    let (_root, top) = folder();
    symlink("elsewhere", top.join("link")).unwrap();
    assert!(give_access(open_folder(CWD, &top).unwrap(), c"link").is_err(), "not through a link");
}

/// A program that writes to a folder until it is stopped.
struct Writer(Arc<AtomicBool>, JoinHandle<()>);

impl Writer {
    fn start(mut write: impl FnMut(u64) + Send + 'static) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let (theirs, (begun, begins)) = (Arc::clone(&is_over), channel());
        let writing = std::thread::spawn(move || {
            let mut number = 0;
            while !theirs.load(Ordering::Relaxed) {
                write(number);
                number += 1;
                if number == 100 {
                    begun.send(()).unwrap();
                }
            }
        });
        begins.recv().unwrap();
        Self(is_over, writing)
    }

    fn stop(self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.join().unwrap();
    }
}

/// Removes a folder that a program still writes to. The removal may fail, but must end.
fn ends(bounds: Bounds, top: &Path) {
    let (top, (ended, end)) = (top.to_owned(), channel());
    std::thread::spawn(move || ended.send(bounds.remove(&top).is_ok()));
    end.recv_timeout(Duration::from_secs(30)).unwrap();
}

#[test]
fn a_removal_ends_while_a_program_writes_deeper_and_deeper() {
    let (_root, top) = folder();
    let mut innermost = nest(&top, 1_000);
    let again = top.clone();
    let writer = Writer::start(move |_| {
        // The writer begins anew if its folder has gone.
        let anew = || fs::create_dir_all(&again).ok().and_then(|()| open_folder(CWD, &again).ok());
        if let Some(next) = deeper(&innermost).ok().or_else(anew) {
            innermost = next;
        }
    });
    ends(Bounds { moves: 50, ..Bounds::default() }, &top);
    writer.stop();
    remove_folder(&top).unwrap();
    assert!(!top.exists());
}

#[test]
fn a_removal_ends_while_a_program_fills_the_folder() {
    let (_root, top) = folder();
    let at = open_folder(CWD, &top).unwrap();
    let writer = Writer::start(move |number| {
        let _ = mkdirat(&at, format!("{number}"), Mode::RWXU);
        let _ = openat(&at, format!("{number}/file"), OFlags::CREATE | OFlags::WRONLY, Mode::RUSR);
    });
    ends(Bounds { tries: 1, ..Bounds::default() }, &top);
    writer.stop();
    remove_folder(&top).unwrap();
    assert!(!top.exists());
}

#[test]
fn what_is_too_deep_for_one_removal_is_an_error_and_the_rest_is_gone() {
    let (_root, top) = folder();
    nest(&top, 10);
    fs::write(top.join("args"), "secret").unwrap();
    let failed = Bounds { depth: 1, depth_without_moves: 1, moves: 3, tries: 1 }.remove(&top).unwrap_err();
    assert!(failed.to_string().contains("nested too deep"), "{failed}");
    assert!(!top.join("args").exists());
    remove_folder(&top).unwrap();
    assert!(!top.exists());
}
