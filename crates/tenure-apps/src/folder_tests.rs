use super::*;

fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn read_of(files: &[(&str, &str)]) -> Folder {
    read(folder_of(files).path(), None, &|_| true).unwrap()
}

fn named<'a>(folder: &'a Folder, sort: Sort, name: &str) -> &'a App {
    folder.apps.iter().find(|app| app.sort == sort && app.name == name).unwrap()
}

#[test]
fn kudus_layout_is_found_wherever_kudu_has_it() {
    for root in ["", "App_Data/jobs/", "site/wwwroot/App_Data/jobs/", "site/jobs/"] {
        let folder = read_of(&[
            (&format!("{root}triggered/nightly/run.sh"), "true"),
            (&format!("{root}triggered/nightly/settings.job"), r#"{"schedule":"0 0 2 * * *"}"#),
            (&format!("{root}continuous/mailer/run.py"), ""),
        ]);
        assert_eq!(folder.apps.len(), 2, "{root}: {folder:?}");
        let nightly = named(&folder, Sort::Triggered, "nightly");
        assert!(nightly.runs() && nightly.settings.schedule.is_some(), "{nightly:?}");
        assert_eq!(nightly.command, ["bash", "run.sh"]);
        assert_eq!(named(&folder, Sort::Continuous, "mailer").command, ["python3", "run.py"]);
    }
}

#[test]
fn of_equal_names_in_both_places_the_first_place_wins() {
    let folder = read_of(&[("triggered/a/run.sh", ""), ("site/jobs/triggered/a/run.py", "")]);
    assert_eq!(folder.apps.len(), 1);
    assert_eq!(folder.apps[0].command, ["bash", "run.sh"]);
    assert!(folder.notes[0].contains("taken"), "{:?}", folder.notes);
}

#[test]
fn another_root_is_relative_or_absolute() {
    let root = folder_of(&[("elsewhere/triggered/a/run.sh", "")]);
    for other in [PathBuf::from("elsewhere"), root.path().join("elsewhere")] {
        assert_eq!(read(root.path(), Some(&other), &|_| true).unwrap().apps.len(), 1);
    }
}

/// T070: the one folder in a folder is gone into, once.
#[test]
fn t070_a_folder_that_holds_only_a_folder_stands_for_it() {
    let folder = read_of(&[
        ("triggered/packed/inner/run.sh", ""),
        ("triggered/packed/inner/settings.job", r#"{"stopping_wait_time":7}"#),
        ("triggered/deep/one/two/run.sh", ""),
    ]);
    let packed = named(&folder, Sort::Triggered, "packed");
    assert!(packed.runs() && packed.folder.ends_with("packed/inner"), "{packed:?}");
    assert_eq!(packed.settings.stopping_wait.as_secs(), 7);
    assert_eq!(named(&folder, Sort::Triggered, "deep").wrong, [crate::NOTHING_TO_RUN]);
}

/// T071: with Kudu an unreadable file is the same as none.
#[test]
fn t071_settings_that_are_no_settings_keep_the_app_from_running_and_are_told() {
    for bad in ["{", "[]", "\"x\"", "{\"is_singleton\":1}"] {
        let folder = read_of(&[("continuous/a/run.sh", ""), ("continuous/a/settings.job", bad)]);
        let app = &folder.apps[0];
        assert!(!app.runs() && app.wrong.len() == 1, "{bad}: {:?}", app.wrong);
    }
    let marked = read_of(&[
        ("continuous/a/run.sh", ""),
        ("continuous/a/settings.job", "\u{feff}{\"is_singleton\":true}"),
    ]);
    assert!(marked.apps[0].settings.is_singleton);
}

/// T086, KD-11: Kudu's set of names begins case-insensitive and becomes case-sensitive with its first refresh.
#[test]
fn t086_names_that_differ_in_case_alone_are_refused_each_time_they_are_read() {
    let files =
        [("triggered/Report/run.sh", ""), ("triggered/report/run.sh", ""), ("continuous/REPORT/run.sh", "")];
    let root = folder_of(&files);
    let first = read(root.path(), None, &|_| true).unwrap();
    assert_eq!(first, read(root.path(), None, &|_| true).unwrap(), "a refresh changes nothing");
    for name in ["Report", "report"] {
        let app = named(&first, Sort::Triggered, name);
        assert!(!app.runs() && app.wrong[0].contains("only in case"), "{:?}", app.wrong);
    }
    assert!(named(&first, Sort::Continuous, "REPORT").runs(), "the other sort has names of its own");
}

#[test]
fn a_triggered_and_a_continuous_app_may_share_a_name() {
    let folder = read_of(&[("triggered/a/run.sh", ""), ("continuous/a/run.sh", "")]);
    assert!(folder.apps.len() == 2 && folder.apps.iter().all(App::runs));
}

#[test]
fn what_is_no_app_is_told() {
    let folder = read_of(&[
        ("triggered/readme.txt", ""),
        ("triggered/.DS_Store", ""),
        ("triggered/a b/run.sh", ""),
        ("continuous/off/disable.job", ""),
        ("continuous/off/run.sh", ""),
    ]);
    assert!(folder.notes.is_empty() && folder.strays.len() == 1, "{folder:?}");
    assert!(folder.strays[0].contains("readme.txt"), "{:?}", folder.strays);
    assert!(named(&folder, Sort::Triggered, "a b").wrong[0].contains("' '"), "{folder:?}");
    assert!(named(&folder, Sort::Continuous, "off").is_disabled);
    assert!(read_of(&[]).notes[0].contains("no programs found"));
    assert!(matches!(read(Path::new("nowhere/at/all"), None, &|_| true), Err(ReadError::Io { .. })));
}

#[test]
fn the_plain_form_says_the_same_in_one_place() {
    let text = r#"
        [triggered.report]
        command = ["python3", "report.py", "--all"]
        folder = "scripts"
        schedule = "0 0 2 * * *"
        time_zone = "Europe/Berlin"
        overlap = "queue_one"
        env = { LEVEL = "high" }

        [continuous.mailer]
        run = "mailer.sh"
        is_singleton = true

        [continuous.wrong]
        command = []
        [continuous.outside]
        command = ["true"]
        folder = "../.."
        [triggered.both]
        command = ["true"]
        run = "a.sh"
    "#;
    let folder = read_of(&[("tenure.toml", text), ("scripts/report.py", ""), ("mailer.sh", "")]);
    let report = named(&folder, Sort::Triggered, "report");
    assert!(report.runs(), "{:?}", report.wrong);
    assert_eq!(report.command, ["python3", "report.py", "--all"]);
    assert!(report.folder.ends_with("scripts"));
    assert_eq!(report.settings.schedule.as_ref().unwrap().to_string(), "0 0 2 * * * in Europe/Berlin");
    assert_eq!(report.settings.env["LEVEL"], "high");
    let mailer = named(&folder, Sort::Continuous, "mailer");
    assert!(mailer.settings.is_singleton && mailer.command == ["bash", "mailer.sh"], "{mailer:?}");
    assert!(named(&folder, Sort::Continuous, "wrong").wrong[0].contains("command"));
    assert!(named(&folder, Sort::Continuous, "outside").wrong[0].contains("folder"));
    assert!(named(&folder, Sort::Triggered, "both").wrong[0].contains("run"));
}

#[test]
fn a_plain_form_that_is_none_is_refused_with_its_place() {
    for (text, told) in [("[triggered", "line 1"), ("triggerd = 1", "triggerd"), ("[triggered]\na = 1", "a")]
    {
        let refused = read(folder_of(&[("tenure.toml", text)]).path(), None, &|_| true).unwrap_err();
        assert!(
            matches!(refused, ReadError::Plain { .. }) && refused.to_string().contains(told),
            "{refused}"
        );
    }
}

/// A pipe, so that whoever opens it waits for somebody to write.
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn an_app_that_cannot_be_read_fails_alone_and_says_why() {
    let root = folder_of(&[
        ("triggered/good/run.sh", ""),
        ("triggered/pipe/run.sh", ""),
        ("triggered/endless/run.sh", ""),
        ("triggered/dangling/run.sh", ""),
        ("triggered/folder/run.sh", ""),
        ("triggered/folder/settings.job/x", ""),
        ("triggered/bytes/run.sh", ""),
        ("triggered/large/run.sh", ""),
        ("triggered/large/settings.job", &format!("{{}}{}", " ".repeat(300 * 1024))),
        ("triggered/many/run.sh", ""),
        ("continuous/good/run.sh", ""),
    ]);
    let triggered = root.path().join("triggered");
    pipe(&triggered.join("pipe/settings.job"));
    std::os::unix::fs::symlink("/dev/zero", triggered.join("endless/settings.job")).unwrap();
    std::os::unix::fs::symlink("nowhere", triggered.join("dangling/settings.job")).unwrap();
    fs::write(triggered.join("bytes/settings.job"), b"{\"input\":\"\xff\"}").unwrap();
    for number in 0..MOST_FILES {
        fs::write(triggered.join(format!("many/{number}")), "").unwrap();
    }
    let found = read(root.path(), None, &|_| true).unwrap();
    for (name, told) in [
        ("pipe", "cannot read settings.job: not a regular file"),
        ("endless", "cannot read settings.job: not a regular file"),
        ("folder", "cannot read settings.job: not a regular file"),
        ("dangling", "cannot read settings.job: No such file"),
        ("bytes", "cannot read settings.job"),
        ("large", "larger than 262144 bytes"),
        ("many", "more than 10000 entries"),
    ] {
        let app = named(&found, Sort::Triggered, name);
        assert!(
            !app.runs() && app.wrong.len() == 1 && app.wrong[0].contains(told),
            "{name}: {:?}",
            app.wrong
        );
    }
    assert!(named(&found, Sort::Triggered, "good").runs() && named(&found, Sort::Continuous, "good").runs());
}

#[test]
fn a_folder_that_may_not_be_read_keeps_nothing_else_from_running() {
    use std::os::unix::fs::PermissionsExt;
    let root = folder_of(&[
        ("triggered/shut/run.sh", ""),
        ("triggered/open/run.sh", ""),
        ("continuous/other/run.sh", ""),
    ]);
    let set = |path: &str, mode| {
        fs::set_permissions(root.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("triggered/shut", 0);
    // Whoever may do everything may read it.
    let may_all = fs::read_dir(root.path().join("triggered/shut")).is_ok();
    let found = read(root.path(), None, &|_| true).unwrap();
    set("triggered/shut", 0o755);
    assert!(named(&found, Sort::Triggered, "open").runs());
    assert_eq!(named(&found, Sort::Triggered, "shut").runs(), may_all);
    set("triggered", 0);
    let found = read(root.path(), None, &|_| true).unwrap();
    set("triggered", 0o755);
    assert!(named(&found, Sort::Continuous, "other").runs());
    assert!(may_all || found.notes[0].contains("cannot read"), "{:?}", found.notes);
}

#[test]
fn a_name_in_the_wrong_case_is_told() {
    let folder = read_of(&[
        ("triggered/a/run.sh", ""),
        ("triggered/a/Settings.job", "{}"),
        ("continuous/b/run.sh", ""),
        ("continuous/b/DISABLE.JOB", ""),
    ]);
    let [a, b] = [named(&folder, Sort::Triggered, "a"), named(&folder, Sort::Continuous, "b")];
    assert!(a.runs() && a.notes == ["ignored Settings.job: the name must be settings.job"], "{:?}", a.notes);
    assert!(
        !b.is_disabled && b.notes == ["ignored DISABLE.JOB: the name must be disable.job"],
        "{:?}",
        b.notes
    );
}

#[test]
fn a_plain_form_that_is_no_file_is_refused_and_not_waited_for() {
    let root = folder_of(&[("triggered/a/run.sh", "")]);
    let path = root.path().join("tenure.toml");
    pipe(&path);
    let refused = read(root.path(), None, &|_| true).unwrap_err().to_string();
    assert!(refused.contains("tenure.toml") && refused.contains("not a regular file"), "{refused}");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    let refused = read(root.path(), None, &|_| true).unwrap_err().to_string();
    assert!(refused.contains("cannot read") && refused.contains("tenure.toml"), "{refused}");
}

#[test]
fn a_script_of_the_plain_form_is_one_of_its_folder() {
    for bad in ["../up.sh", "a/../../up.sh", "a\\u0000.sh"] {
        let folder = read_of(&[("tenure.toml", &format!("[triggered.a]\nrun = \"{bad}\"\n"))]);
        assert!(folder.apps[0].wrong[0].contains("invalid run"), "{bad}: {:?}", folder.apps[0].wrong);
    }
}
