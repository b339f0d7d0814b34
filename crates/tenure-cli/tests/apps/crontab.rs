//! `tenure schedule import-crontab`.

use std::time::Duration;

use crate::apps::stand::{SOON, Stand, said};
use crate::program::{command, run};

#[test]
fn a_crontab_becomes_programs_that_run_and_what_is_left_out_is_told() {
    let stand = Stand::of(&[]);
    let file = stand.root.path().join("tab");
    let text = "# mine\nMAILTO=me\nGREETING=hello\n* * * * * sh -c 'cat; echo \"$GREETING $0 $1\"' 'a b' c%one%two\n\
                30 2 * * 1 /usr/bin/backup --all\n0 0 * * * echo x > y\n@reboot start\nnonsense\n";
    std::fs::write(&file, text).unwrap();
    let (tab, to) = (file.display().to_string(), stand.folder().display().to_string());
    let dry = said(&run(&["schedule", "import-crontab", &tab, "--dry-run"], stand.root.path()));
    assert_eq!((dry.code, dry.out.as_str()), (1, ""), "{}", dry.err);
    for told in [
        "line 2: MAILTO",
        "line 5: backup: ",
        "line 6: skipped: it needs a shell (it contains '>'); pass --shell",
        "line 7: skipped: @reboot",
        "line 8: skipped",
        "2 converted, 3 skipped",
    ] {
        assert!(dry.err.contains(told), "{told:?} in {}", dry.err);
    }
    assert!(!stand.folder().join("tenure.toml").exists());
    let made = said(&run(&["schedule", "import-crontab", &tab, "--to", &to], stand.root.path()));
    assert_eq!(made.code, 1, "{}", made.err);
    let again = said(&run(&["schedule", "import-crontab", &tab, "--to", &to], stand.root.path()));
    assert_eq!(again.code, 6, "what is there stays: {}", again.err);
    let _host = stand.host(&[]);
    let ran = stand.app(&["run", "--wait", "sh"]);
    assert!(
        ran.out.contains("out: one") && ran.out.contains("out: twohello a b c"),
        "{} {}",
        ran.out,
        ran.err
    );
    let listed = stand.app(&["list"]).out;
    assert!(listed.contains("unix 30 2 * * 1"), "{listed}");
}

/// It would run with other rights than there: as whoever starts the host, who may be root.
#[test]
fn a_line_of_another_user_is_left_out_unless_somebody_says_otherwise() {
    let stand = Stand::of(&[]);
    let file = stand.root.path().join("tab");
    std::fs::write(&file, "0 0 * * * nobody-at-all /bin/theirs\n").unwrap();
    let tab = file.display().to_string();
    let import = ["schedule", "import-crontab", &tab, "--system"];
    let left = said(&run(&import, stand.root.path()));
    assert_eq!((left.code, left.out.as_str()), (1, ""), "{}", left.err);
    assert!(left.err.contains("line 1: skipped: it belongs to user nobody-at-all"), "{}", left.err);
    assert!(left.err.contains("0 converted, 1 skipped"), "{}", left.err);
    let taken = said(&run(&[&import[..], &["--all-users"]].concat(), stand.root.path()));
    assert!(taken.code == 0 && taken.out.contains("[triggered.theirs]"), "{} {}", taken.out, taken.err);
    assert!(taken.err.contains("line 1: it ran as nobody-at-all, and now runs as"), "{}", taken.err);
}

#[test]
fn a_shell_reads_commands_only_if_somebody_says_so() {
    let stand = Stand::of(&[]);
    let mut child = command(&["schedule", "import-crontab", "-", "--shell"], stand.root.path());
    let file = stand.root.path().join("tab");
    std::fs::write(&file, "SHELL=/bin/bash\n0 0 * * * echo x | tr x y > \"$OUT/made\"\n").unwrap();
    let made = said(&child.stdin(std::fs::File::open(&file).unwrap()).output().unwrap());
    assert!(made.code == 0 && made.out.contains("\"/bin/bash\""), "{} {}", made.out, made.err);
    stand.write("tenure.toml", &made.out);
    let _host = stand.host(&[]);
    assert_eq!(stand.app(&["run", "--wait", "echo"]).code, 0);
    assert_eq!(stand.wait_for_lines("made", 1, SOON.max(Duration::from_secs(1))), ["y"]);
}
