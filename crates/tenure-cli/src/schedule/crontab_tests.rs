use super::*;

fn read(text: &str) -> Crontab {
    Crontab::read(text, &Reading::default())
}

fn one(text: &str) -> Entry {
    let tab = read(text);
    assert!(tab.entries.len() == 1 && tab.notes.is_empty(), "{text}: {tab:?}");
    tab.entries[0].clone()
}

fn words_of(text: &str) -> Vec<String> {
    match words(text) {
        Command::Words(words) => words,
        Command::NeedsShell(why) => panic!("{text}: {why}"),
    }
}

#[test]
fn a_crontab_is_read_with_its_comments_variables_and_short_forms() {
    let tab = read(
        "# nightly\nMAILTO=me@example.com\nPATH = /usr/bin:/bin\nQUOTED=\"a b\"\n\n\
         30 2 * * 1-5 /usr/bin/backup --full\n@daily\t/usr/bin/report\n  */5  *  *  *  *   poll\n",
    );
    assert_eq!(tab.notes.len(), 1, "{:?}", tab.notes);
    assert!(tab.notes[0].0 == 2 && tab.notes[0].1.contains("MAILTO"));
    let texts: Vec<_> =
        tab.entries.iter().map(|entry| (entry.line, entry.when.as_str(), entry.text.as_str())).collect();
    assert_eq!(
        texts,
        [
            (6, "30 2 * * 1-5", "/usr/bin/backup --full"),
            (7, "@daily", "/usr/bin/report"),
            (8, "*/5  *  *  *  *", "poll")
        ]
    );
    assert_eq!(tab.entries[0].env["PATH"], "/usr/bin:/bin");
    assert_eq!(tab.entries[0].env["QUOTED"], "a b");
}

#[test]
fn variables_count_from_their_line_on_and_a_zone_is_one_for_the_schedule() {
    let tab = read("0 1 * * * a\nX=1\n0 1 * * * b\nCRON_TZ=Europe/Berlin\n0 1 * * * c\n");
    let has_x: Vec<_> = tab.entries.iter().map(|entry| entry.env.contains_key("X")).collect();
    assert_eq!(has_x, [false, true, true]);
    assert_eq!(tab.entries[2].schedule.to_string(), "unix 0 1 * * * in Europe/Berlin");
    assert!(!tab.entries[2].env.contains_key("CRON_TZ"));
}

#[test]
fn what_stands_behind_a_percent_sign_is_what_the_command_reads() {
    let entry = one(r"0 0 * * * mail -s 100\% me%Hello,%%bye 5\%");
    assert_eq!(entry.text, "mail -s 100% me");
    assert_eq!(entry.input.as_deref(), Some("Hello,\n\nbye 5%"));
    assert_eq!(one("0 0 * * * date").input, None);
}

#[test]
fn a_command_is_cut_into_words_as_a_shell_would_do_it() {
    assert_eq!(words_of("/bin/a  'b c' \"d e\" f\\ g"), ["/bin/a", "b c", "d e", "f g"]);
    assert_eq!(words_of("a '' \"\""), ["a", "", ""]);
    assert_eq!(words_of(r#"a "b\"c" "d\e" 'f\'"#), ["a", "b\"c", "d\\e", "f\\"]);
    assert_eq!(words_of("a b=c --x=y"), ["a", "b=c", "--x=y"]);
    assert_eq!(words_of("a'b'\"c\""), ["abc"]);
}

#[test]
fn what_only_a_shell_understands_is_told_and_never_guessed() {
    for text in [
        "a | b",
        "a > b",
        "a && b",
        "a; b",
        "a $HOME",
        "a \"$HOME\"",
        "a `b`",
        "a *.log",
        "a ~/x",
        "cd /x",
        "X=1 a",
        "a 'b",
        "a \\",
        "(a)",
        "a # b",
        ". x",
    ] {
        assert!(matches!(words(text), Command::NeedsShell(_)), "{text}");
    }
}

#[test]
fn lines_that_are_none_are_told_with_their_numbers() {
    let tab = read("0 0 * * *\n61 * * * * a\n@reboot a\n@never a\n1 2 3\n0 0 * * * \n");
    assert!(tab.entries.is_empty(), "{tab:?}");
    assert_eq!(tab.notes.iter().map(|note| note.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_crontab_of_the_system_names_a_user_before_the_command() {
    let tab = Crontab::read(
        "17 * * * * root run-parts /etc/cron.hourly\n0 0 * * * www-data php x.php\n",
        &Reading { of_system: true, zone: None },
    );
    assert_eq!(tab.entries[0].text, "run-parts /etc/cron.hourly");
    let users: Vec<_> = tab.entries.iter().map(|entry| entry.user.as_deref()).collect();
    assert_eq!(users, [Some("root"), Some("www-data")]);
}

#[test]
fn whatever_stands_in_a_file_it_is_read_to_its_end() {
    let mut text = String::from("\0\u{feff}=\n= =\n@\n%%%%%\n* * * * * %\n");
    text.extend((0..500).map(|at| char::from_u32(at * 7).unwrap_or('x')));
    read(&text);
    let many = "x y\n".repeat(MOST_LINES + 5);
    assert!(read(&many).notes.last().unwrap().1.contains("more than"));
}
