//! Programs that are brought into a folder and taken out of it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::apps::stand::{SOON, Said, Stand, said, until};
use crate::program::run;

/// An entry of a zip: its name, its mode and what is in it.
type Entry<'a> = (&'a [u8], u32, &'a [u8]);

const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// A zip as packers write it, with names as they are said.
pub fn zip(path: &Path, entries: &[Entry<'_>]) {
    let mut archive = rawzip::ZipArchiveWriter::new(File::create(path).unwrap());
    for (name, mode, data) in entries {
        let name = rawzip::path::EntryPath::verbatim(*name);
        let (mut entry, config) = archive
            .new_file(name)
            .compression_method(rawzip::CompressionMethod::DEFLATE)
            .unix_permissions(*mode)
            .start()
            .unwrap();
        let deflated = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
        let mut writer = config.wrap(deflated);
        writer.write_all(data).unwrap();
        let (deflated, descriptor) = writer.finish().unwrap();
        deflated.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
}

/// A zip of one entry that says another size than it has: where all entries are listed, and behind its data.
fn saying(zip: &[u8], size: u32) -> Vec<u8> {
    let mut zip = zip.to_vec();
    for (record, at) in [(b"PK\x01\x02", 24), (b"PK\x07\x08", 12)] {
        let begin = zip.windows(4).position(|bytes| bytes == record).unwrap() + at;
        zip[begin..begin + 4].copy_from_slice(&size.to_le_bytes());
    }
    zip
}

fn tenure(stand: &Stand, args: &[&str]) -> Said {
    said(&run(&[&["app"], args].concat(), stand.root.path()))
}

fn deploy(stand: &Stand, source: &str, more: &[&str]) -> Said {
    tenure(stand, &[&["deploy", source, "--to", "jobs"], more].concat())
}

/// Nothing of our own is left beside the programs.
fn is_tidy(stand: &Stand) -> bool {
    let names = fs::read_dir(stand.folder()).into_iter().flatten();
    names
        .filter_map(Result::ok)
        .all(|entry| !entry.file_name().to_string_lossy().starts_with(".tenure-deploy"))
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Before, root turned a set-user-ID file of another user into one of root.
#[test]
fn a_deployed_file_and_its_working_copy_have_no_set_user_id_bit() {
    let stand = Stand::of(&[("triggered/other/run.sh", "echo other")]);
    let source = stand.root.path().join("report");
    write(source.join("run.sh"), "echo mode=$(stat -c %a helper)");
    write(source.join("helper"), "#!/bin/sh\nid");
    fs::set_permissions(source.join("helper"), fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(deploy(&stand, "report", &["--as", "triggered/report"]).code, 0);
    let helper = stand.folder().join("triggered/report/helper");
    assert_eq!(helper.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
    // The bit is set again, in the folder from which each run is copied.
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o6755)).unwrap();
    let _host = stand.host(&[]);
    let ran = stand.app(&["run", "--wait", "report"]);
    assert!(ran.out.contains("mode=755"), "{} {}", ran.out, ran.err);
}

#[test]
fn a_program_comes_is_replaced_as_a_whole_and_goes() {
    let stand = Stand::of(&[("triggered/other/run.sh", "echo other")]);
    let source = stand.root.path().join("report");
    write(source.join("run.sh"), "cat words.txt");
    write(source.join("words.txt"), "first");
    write(source.join("old.txt"), "");
    let came = deploy(&stand, "report", &["--as", "triggered/report"]);
    assert!(came.code == 0 && came.out.contains("triggered/report deployed\n"), "{} {}", came.out, came.err);
    let _host = stand.host(&[]);
    assert!(stand.app(&["run", "--wait", "report"]).out.contains("first"));
    fs::remove_file(source.join("old.txt")).unwrap();
    write(source.join("words.txt"), "second");
    let came = deploy(&stand, "report", &["--as", "triggered/report"]);
    assert!(came.out.contains("triggered/report replaced\n"), "{} {}", came.out, came.err);
    assert!(!stand.folder().join("triggered/report/old.txt").exists(), "as a whole");
    assert!(stand.app(&["run", "--wait", "report"]).out.contains("second"), "the next run has it");
    let gone = tenure(&stand, &["rm", "triggered/report", "--from", "jobs"]);
    assert_eq!(gone.code, 0, "{}", gone.err);
    assert!(!stand.folder().join("triggered/report").exists() && is_tidy(&stand));
    assert_eq!(tenure(&stand, &["rm", "triggered/report", "--from", "jobs"]).code, 5);
    assert_eq!(stand.app(&["run", "--wait", "other"]).code, 0);
}

#[test]
fn what_cannot_run_is_not_deployed_and_what_is_there_stays() {
    let stand = Stand::of(&[("triggered/report/run.sh", "echo first")]);
    let source = stand.root.path().join("bad");
    for (files, told) in [
        (&[("triggered/report/readme.md", "")][..], "No runnable script"),
        (&[("triggered/report/run.sh", ""), ("triggered/report/settings.job", "{")], "settings.job"),
        (&[("triggered/Report/run.sh", "")], "only in case"),
        (&[("triggered/x/run.sh", ""), ("tenure.toml", "")], "tenure.toml"),
        (&[("run.sh", "")], "--as triggered/NAME"),
    ] {
        let _ = fs::remove_dir_all(&source);
        files.iter().for_each(|(path, text)| write(source.join(path), text));
        let refused = deploy(&stand, "bad", &[]);
        assert!(
            refused.code != 0 && refused.err.contains(told),
            "{files:?}: {} {}",
            refused.code,
            refused.err
        );
        assert_eq!(fs::read_to_string(stand.folder().join("triggered/report/run.sh")).unwrap(), "echo first");
        assert!(is_tidy(&stand) && !stand.folder().join("triggered/x").exists());
    }
    for name in [
        "report",
        "triggered/",
        "triggered/a b",
        "triggered/../x",
        "triggered/..",
        "triggered/.x",
        "sometimes/x",
        "/etc",
    ] {
        assert_eq!(deploy(&stand, "bad", &["--as", name]).code, 2, "{name}");
        assert_eq!(tenure(&stand, &["rm", name, "--from", "jobs"]).code, 2, "{name}");
    }
    assert_eq!(deploy(&stand, "nowhere", &["--as", "triggered/x"]).code, 5);
    assert_eq!(deploy(&stand, "/dev/zero", &["--as", "triggered/x"]).code, 7);
}

/// As `tenure run` has it for a folder: what cannot run keeps nothing else from running.
#[test]
fn of_a_package_what_can_run_is_deployed_and_the_rest_is_told_by_name_with_the_reason() {
    let stand =
        Stand::of(&[("triggered/stays/run.sh", "echo first"), ("triggered/Loud/run.sh", "echo first")]);
    // What is not installed here, of what is mostly not.
    let by = [("fsx", "dotnet"), ("ps1", "pwsh"), ("php", "php"), ("jar", "java")];
    let (extension, by) = *by.iter().find(|(_, by)| !has(by)).unwrap();
    let missing = format!("triggered/missing/run.{extension}");
    let files: [(&[u8], &[u8]); 9] = [
        (b"triggered/good/run.sh", b"echo good"),
        (b"triggered/windows/run.exe", b"MZ"),
        (b"triggered/shell/run.cmd", b"echo"),
        (b"triggered/no interpreter/run.sh", b"echo"),
        (b"triggered/stays/run.sh", b"echo second"),
        (b"triggered/stays/settings.job", b"{"),
        (b"triggered/loud/run.sh", b"echo"),
        (missing.as_bytes(), b"0"),
        (b"continuous/also/run.sh", b"sleep 600"),
    ];
    let entries: Vec<Entry<'_>> = files.iter().map(|(name, data)| (*name, FILE, *data)).collect();
    zip(&stand.root.path().join("mixed.zip"), &entries);
    let came = deploy(&stand, "mixed.zip", &[]);
    assert_eq!(came.code, 1, "{}", came.err);
    assert_eq!(came.out.lines().collect::<Vec<_>>(), ["triggered/good deployed", "continuous/also deployed"]);
    for told in [
        "triggered/windows: No runnable script file was found. ignored run.exe: it runs on Windows only",
        "triggered/shell: No runnable script file was found. ignored run.cmd: it runs on Windows only",
        "triggered/no interpreter: name: ",
        "triggered/stays: invalid settings.job",
        "triggered/loud: its name differs from the existing Loud only in case",
        &format!("triggered/missing: run.{extension} needs {by}, which is not installed here"),
        "6 programs were not deployed; the others were",
    ] {
        assert!(came.err.contains(told), "{told}: {}", came.err);
    }
    let there = |path: &str| fs::read_to_string(stand.folder().join(path)).unwrap_or_default();
    assert_eq!(
        (there("triggered/stays/run.sh").as_str(), there("triggered/good/run.sh").as_str()),
        ("echo first", "echo good")
    );
    assert!(is_tidy(&stand) && !stand.folder().join("triggered/windows").exists());
}

#[test]
fn a_file_beside_the_programs_of_a_package_is_told_and_is_no_failure() {
    let stand = Stand::of(&[]);
    for (path, text) in [
        ("package/triggered/good/run.sh", "echo good"),
        ("package/triggered/.DS_Store", "Bud1"),
        ("package/triggered/README.md", "read me"),
    ] {
        write(stand.root.path().join(path), text);
    }
    let came = deploy(&stand, "package", &[]);
    assert_eq!((came.code, came.out.as_str()), (0, "triggered/good deployed\n"), "{}", came.err);
    assert!(came.err.contains("triggered/README.md: not a folder"), "{}", came.err);
    assert!(!came.err.contains("DS_Store") && is_tidy(&stand), "{}", came.err);
}

#[test]
fn a_zip_that_means_no_good_is_refused_with_what_is_wrong_and_nothing_of_it_stays() {
    let stand = Stand::of(&[("triggered/report/run.sh", "echo first")]);
    let script: Entry<'_> = (b"triggered/report/run.sh", PROGRAM, b"echo second");
    let many: Vec<Vec<u8>> =
        (0..20_001).map(|number| format!("triggered/report/{number}").into_bytes()).collect();
    let long = [b"triggered/report/".as_slice(), &[b'x'; 2_000]].concat();
    let deep = b"x/".repeat(100);
    let mut bad: Vec<(Vec<Entry<'_>>, &str)> = [
        (&b"../../evil.sh"[..], FILE, &b"x"[..], "leads out"),
        (b"/etc/tenure-evil.sh", FILE, b"x", "leads out"),
        (b"..\\..\\evil.sh", FILE, b"x", "leads out"),
        (b"triggered/../../evil.sh", FILE, b"x", "leads out"),
        (b"C:\\evil.sh", FILE, b"x", "drive"),
        (b"triggered/report/\xff.sh", FILE, b"x", "UTF-8"),
        (b"triggered/report/a\nb", FILE, b"x", "control character"),
        (b"triggered/report/a\0b", FILE, b"x", "control character"),
        (&long, FILE, b"x", "at most 1024"),
        (&deep, FILE, b"x", "deep"),
        (b"triggered/report/evil", LINK, b"/etc/passwd", "leads out"),
        (b"triggered/report/evil", LINK, b"../../../etc/passwd", "leads out"),
        (b"triggered/report/evil", LINK, b"a/\xff", "evil"),
        (b"triggered/report/pipe", 0o010_644, b"", "neither a file"),
        (b"triggered/report/device", 0o020_644, b"", "neither a file"),
        (b"triggered/report/run.sh", FILE, b"again", "exists"),
        (b"triggered/report/run.sh/below", FILE, b"x", "below"),
    ]
    .into_iter()
    .map(|(name, mode, data, told)| (vec![script, (name, mode, data)], told))
    .collect();
    let up: Entry<'_> = (b"triggered/report/d/e/f/g/up", LINK, b"../../../..");
    let through: Entry<'_> =
        (b"triggered/report/leak", LINK, b"d/e/f/g/up/../../../../triggered/report/run.sh");
    bad.push((vec![script, up, through], "triggered/report/leak: the link leads out of the package"));
    // Within the package, but elsewhere once the program lies in the folder of programs.
    let deep_script: Entry<'_> = (b"site/wwwroot/App_Data/jobs/triggered/report/run.sh", PROGRAM, b"");
    let to_site: Entry<'_> = (b"site/wwwroot/App_Data/jobs/triggered/report/evil", LINK, b"../../../../x");
    bad.push((vec![deep_script, to_site], "the link evil leads out of the program"));
    let elsewhere: Entry<'_> = (b"shared/run.sh", PROGRAM, b"");
    let as_link: Entry<'_> = (b"triggered/report", LINK, b"../shared");
    bad.push((vec![elsewhere, as_link], "its folder is a symbolic link"));
    bad.push((many.iter().map(|name| (name.as_slice(), FILE, &b""[..])).collect(), "more than 20000"));
    let path = stand.root.path().join("bad.zip");
    let refuse = |told: &str| {
        let refused = deploy(&stand, "bad.zip", &[]);
        assert!(refused.code == 7 && refused.err.contains(told), "{told}: {} {}", refused.code, refused.err);
        assert_eq!(fs::read_to_string(stand.folder().join("triggered/report/run.sh")).unwrap(), "echo first");
        assert!(
            is_tidy(&stand)
                && !stand.root.path().join("evil.sh").exists()
                && !Path::new("/etc/tenure-evil.sh").exists()
        );
    };
    for (entries, told) in &bad {
        zip(&path, entries);
        refuse(told);
    }
    zip(&path, &[script]);
    let whole = fs::read(&path).unwrap();
    // Cut off, or not what it says it is.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refuse("");
    let mut other = whole.clone();
    let at = whole.windows(b"run.sh".len()).position(|part| part == b"run.sh").unwrap() + b"run.sh".len() + 3;
    other[at] ^= 0x10;
    fs::write(&path, &other).unwrap();
    refuse("run.sh");
    // Too large by what it says, and larger than it says.
    for (said, told) in [(1_100 << 20, "larger than 1024 MiB"), (3, "run.sh: Invalid size: expected 3")] {
        fs::write(&path, saying(&whole, said)).unwrap();
        refuse(told);
    }
    fs::write(&path, "no zip").unwrap();
    refuse("");
    fs::write(&path, &whole).unwrap();
    let came = deploy(&stand, "bad.zip", &[]);
    assert_eq!(came.code, 0, "{}", came.err);
}

/// Whether a program of this name is there to run scripts by.
fn has(name: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|folder| folder.join(name).is_file())
}

/// A package as it would be sent to Kudu: each language as one that is triggered, scheduled and continuous.
#[test]
fn a_zip_of_mixed_webjobs_runs_as_it_is() {
    let says = "\"$WEBJOBS_NAME $WEBJOBS_TYPE $WEBJOBS_COMMAND_ARGUMENTS\"";
    let shell = format!(
        ". ./words.sh; echo $WORD {says} >> $OUT/$WEBJOBS_NAME; [ $WEBJOBS_TYPE = triggered ] || exec sleep 600"
    );
    let python = "import os, time, words\nwith open(os.environ['OUT'] + '/' + os.environ['WEBJOBS_NAME'], 'a') as out: print(words.WORD, os.environ['WEBJOBS_NAME'], os.environ['WEBJOBS_TYPE'], os.environ['WEBJOBS_COMMAND_ARGUMENTS'], file=out)\nif os.environ['WEBJOBS_TYPE'] == 'continuous': time.sleep(600)";
    let node = "const e = process.env;\nrequire('fs').appendFileSync(`${e.OUT}/${e.WEBJOBS_NAME}`, `${require('./words').WORD} ${e.WEBJOBS_NAME} ${e.WEBJOBS_TYPE} ${e.WEBJOBS_COMMAND_ARGUMENTS}\\n`);\nif (e.WEBJOBS_TYPE === 'continuous') setTimeout(() => {}, 600000);";
    let php = "<?php require 'words.php'; $e = getenv(); file_put_contents($e['OUT'].'/'.$e['WEBJOBS_NAME'], \"$WORD {$e['WEBJOBS_NAME']} {$e['WEBJOBS_TYPE']} {$e['WEBJOBS_COMMAND_ARGUMENTS']}\\n\", FILE_APPEND); if ($e['WEBJOBS_TYPE'] === 'continuous') sleep(600);";
    let languages: Vec<_> = [
        ("bash", "sh", shell.as_str(), "words.sh", "WORD=word"),
        ("python3", "py", python, "words.py", "WORD = 'word'"),
        ("node", "js", node, "words.js", "exports.WORD = 'word';"),
        ("php", "php", php, "words.php", "<?php $WORD = 'word';"),
    ]
    .into_iter()
    .filter(|(by, extension, ..)| {
        let is_there = has(by);
        if !is_there {
            // Past what a test says that went well and is not shown: nobody shall take it for tried.
            let words =
                format!("a zip of mixed webjobs: {by} is not installed, so run.{extension} was not tried\n");
            std::io::stderr().write_all(words.as_bytes()).unwrap();
        }
        is_there
    })
    .collect();
    assert!(!languages.is_empty());
    let settings = [
        ("triggered", "asked", r#"{"stopping_wait_time": 20, "is_in_place": false}"#),
        ("triggered", "timed", "\u{feff}{\r\n  \"schedule\": \"* * * * * *\"\r\n}"),
        ("continuous", "alone", r#"{"is_singleton": true, "stopping_wait_time": 1}"#),
        ("continuous", "everywhere", r#"{"is_in_place": true, "stopping_wait_time": 1}"#),
    ];
    let mut files: Vec<(String, &str)> = Vec::new();
    for (_, extension, text, beside, words) in &languages {
        for (sort, flavour, settings) in settings {
            // As a packer on Windows writes it.
            let folder = format!("site\\wwwroot\\App_Data\\jobs\\{sort}\\{flavour}-{extension}");
            files.push((format!("{folder}\\run.{extension}"), text));
            files.push((format!("{folder}\\{beside}"), words));
            files.push((format!("{folder}\\settings.job"), settings));
        }
    }
    let stand = Stand::of(&[]);
    let entries: Vec<Entry<'_>> =
        files.iter().map(|(name, text)| (name.as_bytes(), FILE, text.as_bytes())).collect();
    zip(&stand.root.path().join("site.zip"), &entries);
    let came = deploy(&stand, "site.zip", &[]);
    assert_eq!(came.code, 0, "{} {}", came.out, came.err);
    assert_eq!(came.out.lines().count(), languages.len() * settings.len(), "{}", came.out);
    let mut host = stand.host(&[]);
    for (_, extension, ..) in &languages {
        let name = format!("asked-{extension}");
        let ran = stand.app(&["run", "--wait", &name, "a b", "c"]);
        assert_eq!(ran.code, 0, "{name}: {} {}", ran.out, ran.err);
        assert_eq!(stand.left(&name), format!("word {name} triggered 'a b' c\n"));
        let timed = format!("timed-{extension}");
        let lines = stand.wait_for_lines(&timed, 2, SOON);
        assert_eq!(lines[0].trim_end(), format!("word {timed} triggered"));
        for flavour in ["alone", "everywhere"] {
            let name = format!("{flavour}-{extension}");
            until(&name, SOON, || !stand.left(&name).is_empty() && stand.standing(&name) == "running");
            assert_eq!(stand.left(&name).trim_end(), format!("word {name} continuous"));
        }
    }
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
}
