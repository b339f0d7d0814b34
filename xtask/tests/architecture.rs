//! The architecture, held by tests. Each rule is asked about the repository as it is; then it is shown a text that
//! breaks it, so that we know it would speak.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use xtask::files::{self, TextFile};
use xtask::rules::{core, edges, engine, exempt, links, lints, measured, prose, sql, words};
use xtask::{check, lines, planted};

fn repository() -> Vec<TextFile> {
    let files = files::texts(&files::root()).expect("the repository can be read");
    assert!(files.iter().any(|file| file.path == "Cargo.toml"), "this is not the repository");
    files
}

fn metadata() -> Value {
    let output = check::cargo(&files::root())
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.into(), text: text.into() }
}

#[track_caller]
fn assert_holds(refused: Vec<String>) {
    assert!(refused.is_empty(), "\n{}\n", refused.join("\n"));
}

#[track_caller]
fn assert_one(refused: &[String], part: &str) {
    assert_eq!(refused.len(), 1, "{refused:#?}");
    assert!(refused[0].contains(part), "`{}` does not say `{part}`", refused[0]);
}

#[test]
fn dependencies_between_crates_point_one_way() {
    let metadata = metadata();
    assert!(edges::crates(&metadata).len() >= 8, "cargo metadata lists the workspace");
    assert_holds(edges::refused(&metadata));
}

#[test]
fn the_architecture_page_shows_every_edge() {
    let page = fs::read_to_string(files::root().join("ARCHITECTURE.md")).expect("the page can be read");
    assert_holds(edges::not_on_the_page(&page));
    let outdated =
        page.replace("tenure-http        → tenure\n", "tenure-http        → tenure, tenure-store\n");
    assert_one(&edges::not_on_the_page(&outdated), "tenure-http → tenure");
}

#[test]
fn a_new_edge_is_refused_by_name() {
    let workspace = |from: &str, to: &str, kind: Value| {
        let package = |name: &str| json!({ "name": name, "dependencies": [] });
        let user = json!({ "name": from, "dependencies": [{ "name": to, "kind": kind }] });
        let others = ["tenure", "tenure-core", "tenure-store", "tenure-sqlite"];
        let others = others.into_iter().filter(|name| *name != from).map(package);
        json!({ "packages": others.chain([user]).collect::<Vec<_>>() })
    };
    let refused = |from, to, kind| edges::refused(&workspace(from, to, kind));

    assert_one(&refused("tenure-store", "tenure", Value::Null), "tenure-store → tenure: ");
    assert_one(&refused("tenure-store", "tenure", Value::Null), "ARCHITECTURE.md");
    assert_one(&refused("tenure-cli", "tenure-sqlite", Value::Null), "tenure-cli → tenure-sqlite");
    assert_one(&refused("tenure-core", "tenure-sqlite", json!("dev")), "tenure-core → tenure-sqlite");
    assert_one(&refused("tenure-core", "tenure-store", json!("build")), "tenure-core → tenure-store");
    assert_one(&refused("tenure", "rusqlite", Value::Null), "tenure → rusqlite");
    assert_one(&refused("tenure-stowaway", "serde", Value::Null), "`tenure-stowaway` is a new crate");
    assert_holds(refused("tenure-cli", "tenure-store", json!("dev")));
}

#[test]
fn the_domain_cannot_depend_on_a_runtime_or_on_chance() {
    let with = |name: &str, kind: Value| {
        let dependency = json!({ "name": name, "kind": kind });
        edges::refused(&json!({ "packages": [{ "name": "tenure-core", "dependencies": [dependency] }] }))
    };
    for name in ["tokio", "tokio-util", "futures-core", "async-trait", "rand", "rand_core", "getrandom"] {
        assert_one(&with(name, Value::Null), name);
    }
    assert_holds(with("serde", Value::Null));
    assert_holds(with("proptest", json!("dev")));
}

#[test]
fn the_domain_has_no_async_no_io_no_clock_and_no_chance() {
    let files = repository();
    let core: Vec<_> = files.iter().filter(|file| file.path.starts_with("crates/tenure-core/src/")).collect();
    assert!(!core.is_empty(), "the domain is in crates/tenure-core/src");
    assert_holds(core.iter().flat_map(|file| core::refused(&file.path, &file.text)).collect());
}

#[test]
fn a_domain_that_waits_reads_or_draws_is_refused() {
    let refused = |text: &str| core::refused("core.rs", text);
    assert_one(&refused("\npub async fn due() {}"), "core.rs:2: `async`");
    assert_one(&refused("fn due(x: F) { x.await }"), "`await`");
    assert_one(&refused("fn due() { std::time::SystemTime::now(); }"), "`::now(`");
    assert_one(&refused("fn due() { at.unwrap_or_else(Timestamp::now) }"), "`::now)`");
    assert_one(&refused("fn age(at: SystemTime) { at.elapsed() }"), "`.elapsed(`");
    assert_one(&refused("use std::time::Instant;"), "`Instant`");
    assert_one(&refused("fn due() { std::fs::read(path); }"), "`std::fs`");
    assert_one(&refused("use std::{\n    fmt,\n    net::TcpStream,\n};"), "`std::net`");
    assert_one(&refused("use std::thread;"), "`std::thread`");
    assert_one(&refused("fn draw() -> u8 { rand::random() }"), "`rand`");
    assert_holds(refused("// Instant, rand and async in a comment\nconst S: &str = \"await std::fs\";"));
    assert_holds(refused("fn from(time: std::time::SystemTime, now: Timestamp) {}"));
    assert_holds(refused("use std::fmt; fn random_operand() {}"));
}

#[test]
fn stores_decide_nothing_that_the_engine_decides() {
    assert_holds(repository().iter().flat_map(|file| engine::refused(&file.path, &file.text)).collect());
}

#[test]
fn a_store_that_decides_is_refused() {
    let refused = |path: &str, text: &str| engine::refused(path, text);
    let store = "crates/tenure-sqlite/src/timers/mod.rs";
    assert_one(&refused(store, "use std::fmt;\nuse tenure_core::{Timer, fire, limits};"), "mod.rs:2: `fire`");
    assert_one(&refused(store, "fn f() { tenure_core::edit(timer) }"), "`edit`");
    assert_one(&refused(store, "use tenure_store::{Only, Put};"), "`Only`");
    assert_holds(refused(store, "use tenure_core::Timer; fn edit() { fire() }"));
    assert_holds(refused("crates/tenure-store/src/engine/timers/mod.rs", "use tenure_core::{edit, fire};"));
}

#[test]
fn sql_lives_with_its_store() {
    assert_holds(repository().iter().flat_map(|file| sql::refused(&file.path, &file.text)).collect());
}

#[test]
fn sql_outside_of_a_store_is_refused() {
    let text = "const A: &str = \"SELECT id\n FROM jobs\";";
    assert_one(&sql::refused("crates/tenure/src/client.rs", text), "client.rs:1: `SELECT`");
    for statement in ["INSERT INTO jobs VALUES (1)", "UPDATE jobs SET x = 1", "DELETE FROM jobs"] {
        let text = format!("f(r#\"{statement}\"#)");
        assert_eq!(sql::refused("crates/tenure-cli/src/bench/mod.rs", &text).len(), 1, "{statement}");
        assert_holds(sql::refused("crates/tenure-cli/src/bench/floor.rs", &text));
        assert_holds(sql::refused("crates/tenure-sqlite/src/claim.rs", &text));
    }
    assert_holds(sql::refused("crates/tenure/src/client.rs", "// UPDATE jobs\nf(\"no UPDATEs, no SELECT\")"));
}

#[test]
fn only_the_listed_files_take_time_and_chance_from_the_machine() {
    assert_holds(repository().iter().flat_map(|file| exempt::refused(&file.path, &file.text)).collect());
}

#[test]
fn an_exemption_from_injected_time_is_refused_outside_of_the_listed_files() {
    for attribute in [
        "#[allow(clippy::disallowed_methods)]",
        "#[expect(clippy::disallowed_methods, reason = \"quick\")]",
        "#[allow(\n    clippy::disallowed_types\n)]",
        "#![allow(clippy::all)]",
    ] {
        let text = format!("{attribute}\nfn now() {{}}\n");
        assert_one(&exempt::refused("crates/tenure/src/worker.rs", &text), "clippy::");
        assert_holds(exempt::refused("crates/tenure-store/src/clock.rs", &text));
        assert_holds(exempt::refused("crates/tenure/tests/kill.rs", &text));
        assert_holds(exempt::refused(
            "crates/tenure/src/worker.rs",
            &format!("#[cfg(test)]\nmod tests {{{text}}}"),
        ));
    }
}

#[test]
fn every_crate_has_the_lints_of_the_workspace_and_no_unsafe_code() {
    let root = files::root();
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("a manifest can be read");
    assert_holds(lints::refused_in_workspace(&read("Cargo.toml")));
    let metadata = metadata();
    assert_holds(
        edges::manifests(&metadata)
            .iter()
            .flat_map(|path| lints::refused_in_crate(path, &read(path)))
            .collect(),
    );
}

#[test]
fn a_crate_that_goes_without_the_lints_is_refused() {
    assert_one(&lints::refused_in_crate("x/Cargo.toml", "[package]\nname = \"x\"\n"), "x/Cargo.toml");
    assert_one(
        &lints::refused_in_crate("x/Cargo.toml", "[lints]\n[dependencies]\nworkspace = true\n"),
        "[lints]",
    );
    let own = "[lints]\nworkspace = true\n[lints.rust]\nunsafe_code = \"allow\"\n";
    assert_one(&lints::refused_in_crate("x/Cargo.toml", own), "no others");

    let allowed = fs::read_to_string(files::root().join("Cargo.toml"))
        .expect("a manifest can be read")
        .replace("unsafe_code = \"forbid\"", "unsafe_code = \"warn\"");
    assert_one(&lints::refused_in_workspace(&allowed), "unsafe_code");
}

#[test]
fn no_source_file_is_too_long_for_one_noun() {
    let lengths = lines::lengths(&repository());
    for long in lines::long(&lengths) {
        println!("{long}");
    }
    assert_holds(lines::refused(&lengths));
}

#[test]
fn a_file_above_the_limit_is_refused_and_a_long_one_is_pointed_out() {
    let of = |lines: usize| lines::lengths(&[file("crates/tenure/src/worker.rs", &"x\n".repeat(lines))]);
    assert_one(&lines::refused(&of(lines::TOO_LONG + 1)), "601 lines");
    assert_holds(lines::refused(&of(lines::TOO_LONG)));
    assert_one(&lines::long(&of(lines::LONG + 1)), "401 lines");
    assert_holds(lines::long(&of(lines::LONG)));
}

#[test]
fn text_that_people_read_is_plain_english() {
    assert!(prose::ALLOWED.len() <= 20, "the rule has at most 20 exceptions");
    assert_holds(repository().iter().flat_map(prose::refused).collect());
}

#[test]
fn the_project_speaks_of_itself_and_of_no_workplace() {
    assert_holds(repository().iter().flat_map(words::refused).collect());
}

#[test]
fn a_word_of_a_workplace_is_refused() {
    let refused = |text: &str| words::refused(&file("docs/guide/start.md", text));
    assert_one(&refused("fine\n`/tmp/x.db` breaks the rule"), "start.md:2: `/tmp/`");
    assert_one(&refused("a helper agent breaks the rule"), "helper agent");
    assert_holds(refused("a session ends; https://example.org/homework/"));
}

#[test]
fn every_published_figure_names_its_commit_and_its_day() {
    assert_holds(repository().iter().flat_map(measured::refused).collect());
}

#[test]
fn a_figure_without_a_commit_or_a_day_is_refused() {
    let refused = |origin: &str| {
        let text = format!("# Benchmarks\n\nNo table.\n\n## SQLite\n\n{origin}\n\n| figure | measured |\n");
        measured::refused(&file("docs/benchmarks.md", &text))
    };
    assert_holds(refused("Measured at commit `1ad37ce9` on 2026-11-21."));
    for origin in ["", "Measured on 2026-11-21.", "At commit `1ad37ce9`.", "At commit `main` on 2026-11-21."]
    {
        assert_one(&refused(origin), "docs/benchmarks.md:5: `## SQLite` has figures");
    }
}

#[test]
fn every_relative_link_of_the_documentation_leads_to_a_file() {
    let files = repository();
    // Pictures are linked to as well.
    let paths: BTreeSet<String> =
        files::all(&files::root()).expect("the repository can be read").into_iter().collect();
    assert_holds(files.iter().flat_map(|file| links::refused(file, &paths)).collect());
}

#[test]
fn every_link_to_a_heading_leads_to_one() {
    assert_holds(links::missing_headings(&repository()));
    let page = file(
        "docs/guide/a.md",
        "# The `first` job, twice\n\n# B\n[a](#the-first-job-twice) [b](a.md#b) [c](a.md#c)",
    );
    assert_one(&links::missing_headings(&[page]), "a.md#c");
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let files = repository();
    let summary =
        files.iter().find(|file| file.path == "docs/guide/SUMMARY.md").expect("the book has a summary");
    let pages = files.iter().filter_map(|file| file.path.strip_prefix("docs/guide/"));
    let pages = pages.filter(|page| page.ends_with(".md") && *page != "SUMMARY.md");
    let missing = pages.filter(|page| !summary.text.contains(&format!("({page})"))).map(str::to_owned);
    assert_holds(missing.collect());
}

#[test]
fn a_link_that_leads_nowhere_is_refused() {
    let paths = BTreeSet::from(["docs/guide/start.md".to_owned(), "README.md".to_owned()]);
    let refused = |text: &str| links::refused(&file("docs/guide/start.md", text), &paths);
    assert_one(&refused("a\n[b](missing.md)"), "start.md:2: the link to `missing.md`");
    assert_one(&refused("[b](../../../README.md)"), "leads nowhere");
    assert_one(&refused("[b]: gone.md"), "gone.md");
    assert_one(&refused("[b](../../README.md)"), "leaves the book");
    let url = "https://github.com/tenure-rs/tenure/blob/main";
    assert_one(&refused(&format!("[b]({url}/GONE.md)")), "leads nowhere");
    assert_holds(refused(&format!(
        "[a]({url}/README.md#top) [b](start.md \"title\") [d](#here) [e](https://x.org/y)"
    )));
    assert_holds(refused("`[a](gone.md)`\n```\n[b](gone.md)\n```"));
}

#[test]
fn every_planted_bug_is_listed_and_planted() {
    let page = fs::read_to_string(files::root().join(planted::PAGE)).expect("the page can be read");
    let listed = planted::on_the_page(&page);
    assert!(listed.len() >= 53, "the page lists the planted bugs");
    for store in ["tenure-sqlite", "tenure-postgres"] {
        let planted = listed.iter().filter(|planted| planted.bends == store).count();
        assert!(planted >= 6, "{store} has {planted} planted bugs");
    }
    assert_holds(planted::refused(&page, &repository()));
}

#[test]
fn a_planted_bug_that_is_not_listed_or_not_planted_is_refused() {
    let source = file("crates/tenure-core/src/a.rs", "if cfg!(mutant = \"a\") {}");
    let refused = |page: &str| planted::refused(page, std::slice::from_ref(&source));
    let row = "| `a` | `tenure-core` | it is wrong | simulation |\n";
    let page = format!("| name | crate | the mistake | finder |\n|---|---|---|---|\n{row}");
    assert_holds(refused(&page));

    assert_one(&refused(""), "does not list `a` of tenure-core");
    assert_one(&refused(&format!("{page}{row}")), "twice");
    assert_one(
        &refused(&format!("{page}| `b` | `tenure-core` | it is wrong | simulation |\n")),
        "has no `cfg!(mutant = \"b\")`",
    );
    assert_one(&refused("| `a` | `tenure-core` | | simulation |\n"), "has no sentence");
    assert_one(&refused("| `a` | `tenure-core` | it is wrong |\n"), "has no finder");
    assert_one(&refused("| `a` | `tenure-core` | it is wrong | `it` |\n"), "has no finder");
    let by_test = "| `a` | `tenure-core` | it is wrong | `it a_test` |\n";
    assert_one(&refused(by_test), "no test program of tenure-core");
    let manifest = file("crates/tenure-core/Cargo.toml", "[[test]]\nname = \"it\"\n");
    assert_holds(planted::refused(by_test, &[source.clone(), manifest]));
    let elsewhere = refused("| `a` | `tenure-store` | it is wrong | simulation |\n");
    assert_eq!(elsewhere.len(), 2, "{elsewhere:?}");
}
