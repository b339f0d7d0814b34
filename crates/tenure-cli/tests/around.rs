//! What stands around the jobs: contexts, settings, the doctor, and what the program tells of itself.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use program::{command, run};
use serde_json::{Value, json};
use served::{Said, ask, run_with, said, served, tenure};
use tempfile::tempdir;

fn good(said: Said) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

fn own(args: &[&str], folder: &Path) -> Said {
    said(&run(args, folder))
}

#[test]
fn a_context_names_a_server_and_a_read_only_one_lets_nothing_be_changed() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    good(own(&["context", "add", "full", "--url", &url], folder.path()));
    good(own(&["context", "add", "looking", "--url", &url, "--read-only"], folder.path()));
    let id = good(own(&["submit", "mail"], folder.path())).trim().to_owned();
    good(own(&["context", "use", "looking"], folder.path()));
    assert_eq!(good(own(&["job", "list", "-o", "id"], folder.path())).trim(), id);
    std::fs::write(folder.path().join("jobs.ndjson"), "{\"kind\":\"k\"}\n").unwrap();
    for args in [
        &["submit", "mail"][..],
        &["job", "cancel", &id],
        &["job", "retry", &id],
        &["job", "run-now", &id],
        &["job", "rm", &id],
        &["job", "import", "jobs.ndjson"],
    ] {
        let refused = own(args, folder.path());
        assert!(
            refused.code == 4 && refused.err.contains("looking is read-only"),
            "{args:?}: {}",
            refused.err
        );
    }
    good(own(&["job", "cancel", &id, "--context", "full"], folder.path()));
    let shown = good(own(&["context", "list", "--no-headers"], folder.path()));
    assert_eq!(shown, format!("\tfull\t{url}\tfull\tno\n*\tlooking\t{url}\tread-only\tno\n"));
    good(own(&["context", "rm", "looking"], folder.path()));
    assert_eq!(own(&["job", "list", "--context", "looking"], folder.path()).code, 5);
    assert_eq!(own(&["context", "use", "looking"], folder.path()).code, 5);
    assert_eq!(own(&["context", "add", "a b", "--url", &url], folder.path()).code, 7);
    assert_eq!(own(&["job", "list", "--context", "full", "--url", &url], folder.path()).code, 2);
}

#[test]
fn a_context_is_written_into_the_file_as_its_owner_wrote_it_and_through_a_link() {
    let folder = tempdir().unwrap();
    let (kept, settings) = (folder.path().join("kept.toml"), folder.path().join("tenure"));
    std::fs::create_dir(&settings).unwrap();
    let mine = "# My settings.\n[log]\nlevel = \"warn\" # quiet\n";
    std::fs::write(&kept, mine).unwrap();
    std::os::unix::fs::symlink(&kept, settings.join("config.toml")).unwrap();
    for args in [
        &["add", "a", "--url", "http://a"][..],
        &["add", "b", "--url", "http://b"],
        &["use", "b"],
        &["rm", "a"],
    ] {
        good(own(&[&["context"], args].concat(), folder.path()));
    }
    assert!(settings.join("config.toml").is_symlink());
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains(mine) && text.contains("current = \"b\"") && !text.contains("http://a"), "{text}");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_file_of_the_settings_is_for_its_owner_and_a_token_in_it_is_never_shown() {
    let folder = tempdir().unwrap();
    let add = ["context", "add", "there", "--url", "http://there", "--token-stdin"];
    good(said(&run_with(&add, folder.path(), "tenure_secret\n")));
    let file = folder.path().join("tenure/config.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&file).unwrap().contains("tenure_secret"));
    let shown = good(own(&["config", "show", "--origin", "--no-headers"], folder.path()));
    assert!(shown.contains("url\thttp://there\tcontext there\n"), "{shown}");
    assert!(shown.contains("token\t(not shown)\tcontext there\n") && !shown.contains("secret"), "{shown}");
    let by_environment = command(&["config", "show", "--origin", "-o", "json"], folder.path())
        .env("TENURE_URL", "http://elsewhere")
        .output()
        .unwrap();
    let shown: Value = serde_json::from_str(&good(said(&by_environment))).unwrap();
    assert_eq!(shown["url"], serde_json::json!({ "value": "http://elsewhere", "origin": "TENURE_URL" }));
    assert_eq!(shown["token"], Value::Null, "it is for its own server only");

    std::fs::write(
        &file,
        "current = \"there\"\n[contexts.there]\nurl = \"http://there\"\ntokn = \"tenure_secret\"\n",
    )
    .unwrap();
    let told = own(&["config", "show"], folder.path());
    assert_eq!(told.code, 7);
    assert!(
        told.err.contains("tokn") && told.err.contains("line") && !told.err.contains("secret"),
        "{}",
        told.err
    );
}

#[test]
fn the_doctor_says_of_each_thing_how_it_is_and_what_to_do_next() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let well = good(tenure(&address, folder.path(), &["doctor", "-o", "json"]));
    let well: Value = serde_json::from_str(&well).unwrap();
    let states: Vec<&str> =
        well["checks"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["ok"; 7], "{well}");
    assert!(good(tenure(&address, folder.path(), &["doctor"])).contains("jobs.db"));
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let told = tenure(&nowhere, folder.path(), &["doctor", "--no-headers"]);
    assert_eq!(told.code, 3);
    let last = told.out.lines().last().unwrap().to_owned();
    assert!(last.starts_with("fail\treached") && last.contains("tenure serve"), "{last}");
}

/// For the health check of a container: one line, and the end says it.
#[test]
fn whether_a_server_is_ready_is_said_by_how_the_doctor_ends() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let told = good(tenure(&address, folder.path(), &["doctor", "--ready", "--no-headers"]));
    assert!(told.lines().count() == 1 && told.starts_with("ok\tready"), "{told}");
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert_ne!(tenure(&nowhere, folder.path(), &["doctor", "--ready"]).code, 0);
}

#[test]
fn the_description_is_that_of_the_server_and_needs_none() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    for (args, path) in [(&["openapi"][..], "/openapi.json"), (&["openapi", "--3.0"], "/openapi-3.0.json")] {
        let mut own: Value = serde_json::from_str(&good(own(args, folder.path()))).unwrap();
        let theirs: Value = serde_json::from_str(&ask(&address, "GET", path, "", "").2).unwrap();
        // Without a server it names the usual one.
        assert_eq!(own["servers"], json!([{ "url": "http://localhost:8368" }]));
        own["servers"] = theirs["servers"].clone();
        assert_eq!(own, theirs);
    }
}

#[test]
fn completions_of_each_shell_are_made_and_bash_takes_its_own() {
    let folder = tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = good(own(&["completions", shell], folder.path()));
        assert!(
            text.contains("tenure") && text.contains("run-now") && text.contains("max-attempts"),
            "{shell}"
        );
    }
    assert_eq!(own(&["completions", "tcsh"], folder.path()).code, 2);
    let text = good(own(&["completions", "bash"], folder.path()));
    std::fs::write(folder.path().join("tenure.bash"), text).unwrap();
    let script = "source tenure.bash; COMP_WORDS=(tenure job canc); COMP_CWORD=2; _tenure tenure canc job; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", script]).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&bash.stdout).trim(), "cancel", "{bash:?}");
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let folder = tempdir().unwrap();
    let page = good(own(&["man"], folder.path()));
    assert!(page.contains(".TH") && page.contains("TENURE_URL"), "{page}");
    good(own(&["man", "--dir", "."], folder.path()));
    let page = std::fs::read_to_string(folder.path().join("tenure-job-submit.1")).unwrap();
    assert!(page.contains("max\\-attempts"), "{page}");
    assert_eq!(own(&["man", "--dir", "nowhere"], folder.path()).code, 2);
}

#[test]
fn help_tells_of_the_environment_and_of_exit_codes() {
    let folder = tempdir().unwrap();
    let help = good(own(&["help"], folder.path()));
    assert!(["TENURE_URL", "TENURE_TOKEN", "124", "130"].iter().all(|word| help.contains(word)), "{help}");
    let help = good(own(&["submit", "--help"], folder.path()));
    assert!(help.contains("Examples:") && help.contains("tenure help options"), "{help}");
    let options = good(own(&["help", "options"], folder.path()));
    assert!(options.contains("--token-file") && options.contains("[env: TENURE_URL]"), "{options}");
}

/// A server with a certificate of somebody's own, and where it is.
const SECURE: &str = "
import http.server, ssl, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{\"items\": [], \"next_cursor\": null}'
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(('127.0.0.1', 0), Answers)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
";

#[test]
fn a_server_is_trusted_if_the_system_trusts_it_or_a_file_that_is_named() {
    let folder = tempdir().unwrap();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .output()
        .expect("openssl is there");
    assert!(made.status.success(), "{made:?}");
    let mut server = Command::new("python3")
        .args(["-c", SECURE, "cert.pem", "key.pem"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 is there");
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let url = format!("https://localhost:{}", port.trim());
    let ask = || {
        let mut asks = command(&["ps"], folder.path());
        asks.env("TENURE_URL", &url);
        asks
    };
    let unknown = ask().output().unwrap();
    let known = ask().env("SSL_CERT_FILE", folder.path().join("cert.pem")).output().unwrap();
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(unknown.status.code(), Some(3), "{unknown:?}");
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("certificate"), "{unknown:?}");
    assert_eq!(known.status.code(), Some(0), "{known:?}");
}
