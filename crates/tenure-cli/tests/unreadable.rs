//! A job that cannot be read: it is named, it hides no other, it is found and taken out of the way.

use crate::program;
use crate::served;

use std::path::Path;
use std::process::Command;

use own_postgres::Server;
use program::run;
use serde_json::Value;
use served::{Said, ask, json_of, said, served, tenure};
use tempfile::tempdir;

fn own(args: &[&str], folder: &Path, db: &str) -> Said {
    said(&run(&[args, &["--db", db]].concat(), folder))
}

/// Three jobs, of which the second is damaged; their IDs.
fn damaged(folder: &Path, db: &str, damage: impl Fn()) -> [String; 3] {
    assert_eq!(own(&["db", "migrate"], folder, db).code, 0);
    let ids = ["first", "second", "third"].map(|kind| {
        let submitted = own(&["submit", kind, "--write"], folder, db);
        assert_eq!(submitted.code, 0, "{}", submitted.err);
        submitted.out.trim().to_owned()
    });
    damage();
    ids
}

/// Looks at the store, finds the damage, and repairs it.
fn is_repaired(folder: &Path, db: &str, [first, second, third]: &[String; 3]) {
    let listed = own(&["job", "list", "-o", "id"], folder, db);
    assert_eq!((listed.code, listed.out.trim()), (0, format!("{third}\n{first}").as_str()), "{}", listed.err);
    let named = format!("1 job cannot be read: {second} (column job.terms: ");
    assert!(listed.err.contains(&named) && listed.err.contains("tenure db check"), "{}", listed.err);
    let shown = own(&["job", "get", second], folder, db);
    assert!(shown.code != 0 && shown.err.contains("cannot be read"), "{} {}", shown.code, shown.err);
    let checked = own(&["db", "check"], folder, db);
    assert!(checked.code == 1 && checked.out.contains(second.as_str()), "{} {}", checked.code, checked.out);
    let copied = said(&run(&["db", "copy", "--from", db, "--to", "copy.db", "--even-in-use"], folder));
    let refused = "1 row of this store cannot be read: job ";
    assert!(copied.code != 0 && copied.err.contains(refused), "{} {}", copied.code, copied.err);
    assert!(
        copied.err.contains(second.as_str()) && copied.err.contains("`tenure db repair`"),
        "{}",
        copied.err
    );
    assert!(!folder.join("copy.db").exists(), "nothing was copied");
    let planned = own(&["db", "repair", "--dry-run"], folder, db);
    assert_eq!(planned.code, 0, "{}", planned.err);
    assert!(
        planned.out.contains(second.as_str()) && planned.out.contains("without --dry-run"),
        "{}",
        planned.out
    );
    assert_eq!(own(&["db", "check"], folder, db).code, 1, "nothing was changed");
    let repaired = own(&["db", "repair"], folder, db);
    assert_eq!(repaired.code, 0, "{} {}", repaired.out, repaired.err);
    assert!(repaired.out.contains("moved 1 row into the table quarantine"), "{}", repaired.out);
    let again = own(&["db", "repair"], folder, db);
    assert_eq!((again.code, again.out.trim()), (0, "nothing to repair"));
    assert_eq!(own(&["db", "check"], folder, db).code, 0);
    let listed = own(&["job", "list", "-o", "id"], folder, db);
    assert_eq!((listed.out.trim(), listed.err.trim()), (format!("{third}\n{first}").as_str(), ""));
}

#[test]
fn an_unreadable_job_of_a_file_is_listed_by_its_id_and_repaired() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let damage = || {
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute("UPDATE job SET terms = '{torn' WHERE seq = 2", []).unwrap();
    };
    let ids = damaged(folder.path(), "jobs.db", damage);
    let (_server, at) = served(folder.path());
    let page = json_of(&ask(&at, "GET", "/v1/jobs", "", ""));
    let listed: Vec<&str> =
        page["items"].as_array().unwrap().iter().filter_map(|job| job["id"].as_str()).collect();
    assert_eq!(listed, [ids[2].as_str(), ids[0].as_str()]);
    let [odd] = page["unreadable"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!((odd["id"].as_str(), odd["kind"].as_str()), (Some(ids[1].as_str()), Some("second")), "{odd}");
    assert!(odd["reason"].as_str().unwrap().starts_with("column job.terms: "), "{odd}");
    let one = ask(&at, "GET", &format!("/v1/jobs/{}", ids[1]), "", "");
    assert_eq!((one.0, json_of(&one)["type"].as_str()), (500, Some("urn:tenure:problem:unreadable-data")));
    let removed = ask(&at, "DELETE", &format!("/v1/jobs/{}", ids[1]), "", "");
    assert_eq!(removed.0, 500, "{removed:?}");
    let shown = ask(&at, "GET", "/ui/jobs", "", "");
    assert!(shown.0 == 200 && shown.2.contains("unreadable"), "{shown:?}");
    assert!(ids.iter().all(|id| shown.2.contains(id.as_str())), "{shown:?}");
    let table = tenure(&at, folder.path(), &["job", "list", "-o", "json"]);
    let document: Value = serde_json::from_str(&table.out).unwrap();
    assert_eq!(document["unreadable"][0]["id"].as_str(), Some(ids[1].as_str()));
    is_repaired(folder.path(), "jobs.db", &ids);
    let page = json_of(&ask(&at, "GET", "/v1/jobs", "", ""));
    assert!(page["unreadable"].is_null(), "{page}");
}

#[test]
fn an_unreadable_job_of_a_database_is_listed_by_its_id_and_repaired() {
    let (server, folder) = (Server::start_hasty().unwrap(), tempdir().unwrap());
    let damage = || {
        let sql = "UPDATE tenure.job SET terms = '{torn' WHERE seq = 2";
        let output = Command::new("psql").args(["-q", "-d", &server.url(), "-c", sql]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let ids = damaged(folder.path(), &server.url(), damage);
    is_repaired(folder.path(), &server.url(), &ids);
}
