//! Programs in a sandbox whose folders have links to other files.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;

use crate::apps::sandbox::{attempts, can, succeeded};
use crate::apps::stand::Stand;

/// A link as the folder of a program would make its target readable.
#[test]
fn a_program_whose_folder_is_a_link_to_other_files_does_not_start_in_a_sandbox() {
    if !can("Landlock for files") {
        return;
    }
    let stand = Stand::of(&[("triggered/usual/run.sh", "echo end"), ("real/file", "")]);
    let secret = stand.root.path().join("secret");
    fs::write(&secret, "canary").unwrap();
    let leak = |name: &str, folder: &str, place: &str| {
        let secret = secret.display();
        format!("[triggered.{name}]\nfolder = \"{folder}\"\n{place}\ncommand = [\"cat\", \"{secret}\"]\n")
    };
    let copied = "is_in_place = false";
    let toml = [
        leak("top", "y", ""),
        leak("below", "y/usr", ""),
        leak("copied", "z", copied),
        leak("state", ".tenure/data", ""),
        leak("later", "real", ""),
        leak("later_copied", "real", copied),
    ];
    stand.write("tenure.toml", &toml.concat());
    stand.write(".tenure/data/triggered/other/canary", "canary");
    let at = |name: &str| stand.folder().join(name);
    symlink("/", at("y")).unwrap();
    symlink(stand.root.path(), at("z")).unwrap();
    symlink(stand.root.path(), at("triggered/kudu")).unwrap();
    fs::write(stand.root.path().join("run.sh"), "cat secret").unwrap();
    let _host = stand.host(&["--sandbox", "required"]);
    for name in ["top", "below", "copied", "state", "kudu"] {
        assert_eq!(stand.standing(name), "wrong", "{name}");
    }
    for name in ["later", "later_copied"] {
        let ran = stand.app(&["run", "--wait", name]);
        assert!(!ran.out.contains("canary"), "{name}: {} {}", ran.out, ran.err);
        assert!(ran.err.contains("exit status 1") || ran.code != 0, "{name}: {} {}", ran.out, ran.err);
    }
    // The host has read the folder by now.
    fs::rename(at("real"), at("aside")).unwrap();
    symlink(stand.root.path(), at("real")).unwrap();
    for name in ["later", "later_copied"] {
        let ran = stand.app(&["run", "--wait", name]);
        let all = format!("{} {}", ran.out, ran.err);
        assert!(ran.code != 0 && !all.contains("canary"), "{name}: {all}");
        assert!(all.contains("no link may lead its folder out of"), "{name}: {all}");
    }
    let usual = stand.app(&["run", "--wait", "usual"]);
    assert_eq!(usual.code, 0, "{} {}", usual.out, usual.err);
}

/// The entries of a folder with the host's state are allowed one by one, and a link among them must not allow its target.
#[test]
fn links_beside_the_state_of_the_host_make_nothing_readable() {
    if !can("Landlock for files") {
        return;
    }
    let script = attempts(&[
        ("read elsewhere", "cat docs/secret"),
        ("read a linked file", "cat file"),
        ("read the store", "cat z/apps.db"),
        ("read data of others", "cat z/data/triggered/other/canary"),
        ("read its own file", "cat look.sh"),
        ("read its own file by a link", "cat own"),
    ]);
    let toml = "[triggered.look]\ncommand = [\"bash\", \"look.sh\"]\n";
    let stand = Stand::of(&[("look.sh", &script), ("tenure.toml", toml)]);
    stand.write(".tenure/data/triggered/other/canary", "canary");
    let elsewhere = stand.root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("secret"), "canary").unwrap();
    for (link, target) in [
        ("docs", elsewhere.as_path()),
        ("file", &elsewhere.join("secret")),
        ("z", ".tenure".as_ref()),
        ("own", "look.sh".as_ref()),
    ] {
        symlink(target, stand.folder().join(link)).unwrap();
    }
    let _host = stand.host(&["--sandbox", "required"]);
    assert_eq!(succeeded(&stand, "look"), ["read its own file", "read its own file by a link"]);
}
