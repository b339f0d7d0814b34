//! `tenure db`, as an operator or a script calls it.

use std::process::{Command, Output};

use own_postgres::Server;
use serde_json::Value;
use tempfile::tempdir;

fn db(words: &[&str], url: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tenure"));
    program.arg("db").args(words).args(["--db", url]).env_remove("TENURE_LOG").output().expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complained(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(words: &[&str], url: &str) -> (Option<i32>, Value) {
    let mut all = words.to_vec();
    all.extend(["-o", "json"]);
    let output = db(&all, url);
    (output.status.code(), serde_json::from_str(&said(&output)).expect("it is JSON"))
}

/// A store is made, looked at, found well, damaged, and found not to be well.
fn is_looked_after(url: &str, damage: impl FnOnce()) {
    let (code, migrated) = json(&["migrate"], url);
    assert_eq!((code, migrated["from"].as_u64()), (Some(0), Some(0)), "{migrated}");
    let (code, again) = json(&["migrate"], url);
    assert_eq!((code, again["from"].clone()), (Some(0), migrated["to"].clone()));
    let (code, standing) = json(&["status"], url);
    assert_eq!((code, standing["schema"].clone()), (Some(0), standing["known"].clone()), "{standing}");
    assert_eq!(standing["epoch"].as_u64(), Some(0), "{standing}");
    let (code, checked) = json(&["check"], url);
    assert_eq!((code, checked["findings"].as_array().map(Vec::len)), (Some(0), Some(0)), "{checked}");
    damage();
    let (code, checked) = json(&["check"], url);
    let findings = checked["findings"].as_array().expect("it is a list");
    assert!(code == Some(1) && findings.iter().any(|found| found["about"] == "line"), "{checked}");
    let told = db(&["check"], url);
    assert!(said(&told).contains("does not exist"), "{}", said(&told));
    assert!(complained(&told).contains("nothing was changed"), "{}", complained(&told));
}

#[test]
fn a_file_is_looked_after() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let url = path.display().to_string();
    let missing = db(&["status"], &url);
    assert_eq!(missing.status.code(), Some(3));
    assert!(complained(&missing).contains("file not found"), "{}", complained(&missing));
    let damage = "INSERT INTO ready (lane, priority, round, due, seq, begun) VALUES (1, 0, 0, 1, 4711, 0)";
    is_looked_after(&url, || {
        rusqlite::Connection::open(&path).unwrap().execute(damage, []).unwrap();
    });
    let told = said(&db(&["status"], &url));
    assert!(told.contains("up to date") && told.contains("SQLite"), "{told}");
    assert_eq!(db(&["status"], "memory:").status.code(), Some(2));
}

#[test]
fn the_sql_of_a_file_that_was_printed_makes_what_is_opened() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let url = path.display().to_string();
    let printed = db(&["migrate", "--print-sql"], &url);
    assert!(!path.exists(), "nothing was made");
    rusqlite::Connection::open(&path).unwrap().execute_batch(&said(&printed)).unwrap();
    let (code, migrated) = json(&["migrate"], &url);
    assert_eq!((code, migrated["from"].clone()), (Some(0), migrated["to"].clone()), "nothing is missing");
}

#[test]
fn a_database_is_looked_after() {
    let server = Server::start_hasty().unwrap();
    let psql = |sql: &str| {
        let output = Command::new("psql")
            .args(["-v", "ON_ERROR_STOP=1", "-q", "-d", &server.url()])
            .args(["-c", sql])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", complained(&output));
    };
    is_looked_after(&server.url(), || {
        psql(
            "INSERT INTO tenure.ready (due, round, seq, lane, priority, begun) VALUES (1, 0, 4711, 1, 0, false)",
        );
    });
    let told = said(&db(&["status"], &server.url()));
    assert!(told.contains("PostgreSQL") && told.contains("LISTEN/NOTIFY works"), "{told}");
    // The SQL for a schema beside it is printed, run by psql, and known as a migration.
    let printed = db(&["migrate", "--print-sql", "--grant-to", "shop", "--schema", "beside"], &server.url());
    let sql = said(&printed);
    assert!(sql.contains("GRANT USAGE ON SCHEMA \"beside\" TO \"shop\""), "{sql}");
    psql("CREATE ROLE shop LOGIN");
    let file = tempdir().unwrap();
    let path = file.path().join("migrate.sql");
    std::fs::write(&path, &sql).unwrap();
    let output = Command::new("psql")
        .args(["-v", "ON_ERROR_STOP=1", "-q", "-d", &server.url(), "-f"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", complained(&output));
    let as_shop = server.url().replace("postgres@", "shop@");
    let (code, migrated) = json(&["migrate", "--schema", "beside"], &as_shop);
    assert_eq!((code, migrated["from"].clone()), (Some(0), migrated["to"].clone()), "nothing is missing");
    let refused = db(&["migrate", "--schema", "another"], &as_shop);
    assert_eq!(refused.status.code(), Some(3));
    assert!(complained(&refused).contains("as the owner"), "{}", complained(&refused));
}
