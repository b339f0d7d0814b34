//! The files in `contrib`: chart, images, systemd units, alerts, release scripts. They name only flags, paths, values and
//! commands that exist.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn contrib(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(contrib(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn help(args: &[&str]) -> Option<String> {
    let said = Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).arg("--help").output().unwrap();
    said.status.success().then(|| String::from_utf8(said.stdout).unwrap())
}

fn templates() -> Vec<(String, String)> {
    let files = std::fs::read_dir(contrib("helm/templates")).unwrap();
    let each = files.map(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        let text = read(&format!("helm/templates/{name}"));
        (name, text)
    });
    each.collect()
}

/// What stands between braces, in order.
fn actions(text: &str) -> Vec<&str> {
    let each = text.split("{{").skip(1).map(|rest| rest.split_once("}}").expect("braces are closed").0);
    each.map(|action| action.trim_matches('-').trim()).collect()
}

/// The values that there are, each by its path. The file has two spaces for each step, and no lists of more than one line.
fn values() -> BTreeSet<String> {
    let (mut path, mut all): (Vec<String>, _) = (Vec::new(), BTreeSet::new());
    for line in read("helm/values.yaml").lines() {
        let bare = line.trim_start();
        let Some((name, _)) = bare.split_once(':').filter(|_| !bare.starts_with('#')) else { continue };
        path.truncate((line.len() - bare.len()) / 2);
        path.push(name.trim_matches('"').to_owned());
        all.insert(path.join("."));
    }
    all
}

#[test]
fn templates_use_each_value_and_no_other() {
    let (values, mut used) = (values(), BTreeSet::new());
    for (name, text) in templates() {
        for action in actions(&text) {
            for (at, _) in action.match_indices(".Values.") {
                let rest = &action[at + ".Values.".len()..];
                let end = rest.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '.'));
                let path = rest[..end.unwrap_or(rest.len())].to_owned();
                assert!(values.contains(&path), "{name} uses .Values.{path}, which there is not");
                used.insert(path);
            }
        }
    }
    // One is used if it is, or what is within it, or what it is within.
    let is_used = |value: &String| {
        used.iter().any(|path| {
            path == value || path.starts_with(&format!("{value}.")) || value.starts_with(&format!("{path}."))
        })
    };
    let idle: Vec<_> = values.iter().filter(|value| !is_used(value)).collect();
    assert!(idle.is_empty(), "no template uses {idle:?}");
}

#[test]
fn blocks_of_templates_are_closed_and_names_are_defined() {
    let templates = templates();
    let all: Vec<&str> = templates.iter().flat_map(|(_, text)| actions(text)).collect();
    let defined: BTreeSet<&str> = all.iter().filter_map(|action| action.strip_prefix("define ")).collect();
    for (name, text) in &templates {
        let mut open = 0_i32;
        for action in actions(text) {
            match action.split_whitespace().next().unwrap_or_default() {
                "if" | "with" | "range" | "define" => open += 1,
                "end" => open -= 1,
                _ => {}
            }
            assert!(open >= 0, "{name}: an end too many");
            assert_eq!(action.matches('(').count(), action.matches(')').count(), "{name}: {action}");
            if let Some((_, rest)) = action.split_once("include ") {
                let named = rest.split_whitespace().next().unwrap();
                assert!(defined.contains(named), "{name} includes {named}, which nothing defines");
            }
        }
        assert_eq!(open, 0, "{name}: a block is not closed");
    }
}

#[test]
fn files_of_the_chart_are_those_of_the_folders_beside_it() {
    let given = ["prometheus/alerts.yaml", "grafana/tenure.json", "grafana/tenure-sql.json"];
    let mut named = BTreeSet::new();
    for path in given {
        let name = path.rsplit('/').next().unwrap();
        assert!(
            read(path) == read(&format!("helm/files/{name}")),
            "copy contrib/{path} to contrib/helm/files"
        );
        named.insert(name.to_owned());
    }
    let there = std::fs::read_dir(contrib("helm/files")).unwrap();
    let there: BTreeSet<String> =
        there.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(there, named);
    for (_, text) in templates() {
        for action in actions(&text).iter().filter(|action| action.starts_with(".Files.Get")) {
            let path = action.split('"').nth(1).unwrap();
            assert!(contrib(&format!("helm/{path}")).exists(), "{path}");
        }
    }
}

/// The flags that a text says in a list of arguments.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '-'));
    words.filter(|word| word.starts_with("--") && word.len() > 3).map(str::to_owned).collect()
}

#[test]
fn what_is_started_knows_its_flags_and_answers_at_the_paths_that_are_asked() {
    let serve = help(&["serve"]).unwrap();
    let server = read("helm/templates/server.yaml");
    let args = server.split("args:").nth(1).unwrap().split("env:").next().unwrap();
    let docker = read("docker/Dockerfile");
    let command = docker.lines().find(|line| line.starts_with("CMD ")).unwrap();
    let unit = read("systemd/tenure.service");
    let started = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let run_unit = read("systemd/tenure-run.service");
    let run_args = run_unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let run = help(&["run"]).unwrap();
    assert!(
        run_args.contains(" run ") && flags(run_args).iter().all(|flag| run.contains(flag)),
        "{run_args}"
    );
    for text in [args, command, started] {
        let flags = flags(text);
        assert!(!flags.is_empty(), "{text}");
        for flag in flags {
            assert!(serve.contains(&flag), "`tenure serve` has no {flag}");
        }
    }
    let health = docker.lines().find(|line| line.starts_with("HEALTHCHECK ")).unwrap();
    let (_, asked) = health.split_once("CMD ").unwrap();
    let doctor = help(&["doctor"]).unwrap();
    assert!(asked.contains("doctor") && flags(asked).iter().all(|flag| doctor.contains(flag)), "{asked}");
    let routes = include_str!("../../../docs/guide/rights.md");
    for path in server.split("path: ").skip(1).map(|rest| rest.split([',', ' ']).next().unwrap()) {
        assert!(path.starts_with('/') && routes.contains(&format!("| `{path}` | GET | nothing |")), "{path}");
    }
}

/// What is started by systemd and cron on a machine of its own.
#[test]
fn programs_under_systemd_and_cron_are_started_with_flags_that_there_are() {
    let (unit, table) = (read("systemd/tenure-exec@.service"), read("cron.d/tenure"));
    let started = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let line = table.lines().find(|line| line.contains(" lease run ")).unwrap();
    for (command, text) in [(&["exec"][..], started), (&["lease", "run"], line)] {
        let (ours, program) = text.split_once(" -- ").unwrap();
        assert!(
            ours.contains(&format!("/tenure {} ", command.join(" "))) && program.starts_with('/'),
            "{text}"
        );
        let help = help(command).unwrap();
        let known: Vec<&str> = help.split_whitespace().collect();
        assert!(flags(ours).iter().all(|flag| known.contains(&flag.as_str())), "{text}");
    }
    assert!(unit.contains("LoadCredential=token:") && started.contains("--token-file %d/token"), "{started}");
    // Nobody on the machine sees the access token in the list of processes or in the environment of the unit.
    for text in [&unit, &table] {
        assert!(!text.contains("--token ") && !text.contains("TENURE_TOKEN="), "{text}");
    }
}

/// Whoever is woken is told what to do: with commands that there are.
#[test]
fn rules_name_commands_that_there_are() {
    let rules = read("prometheus/alerts.yaml");
    let mut named = 0;
    for said in rules.split('`').skip(1).step_by(2).filter_map(|said| said.strip_prefix("tenure ")) {
        let words: Vec<&str> = said.split_whitespace().collect();
        let (flags, command): (Vec<&str>, Vec<&str>) =
            words.into_iter().partition(|word| word.starts_with("--"));
        let command: Vec<&str> = command.into_iter().take(2).collect();
        let help = help(&command).unwrap_or_else(|| panic!("there is no `tenure {said}`"));
        assert!(flags.iter().all(|flag| help.contains(flag)), "`tenure {said}` has no such flag");
        named += 1;
    }
    assert!(named >= 5, "only {named} commands are named");
}

/// Where Helm is installed it has the last word.
#[test]
fn helm_makes_manifests_of_it_where_it_is_installed() {
    let on =
        ["prometheusRule.enabled", "dashboards.enabled", "networkPolicy.enabled", "serviceMonitor.enabled"];
    let all: Vec<String> = on.iter().map(|value| format!("{value}=true")).collect();
    let secrets = ["serviceMonitor.existingSecret=s".to_owned(), "database.existingSecret=s".to_owned()];
    for sets in [Vec::new(), [all, secrets.to_vec()].concat()] {
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let Some((has_passed, said)) = rendered(&sets) else { return };
        assert!(has_passed, "{said}");
    }
}

/// Runs `helm template` with these values; none where Helm is not installed.
fn rendered(sets: &[&str]) -> Option<(bool, String)> {
    Command::new("helm").arg("version").output().ok()?;
    let mut helm = Command::new("helm");
    helm.args(["template", "jobs"]).arg(contrib("helm"));
    for set in sets {
        helm.args(["--set", set]);
    }
    let said = helm.output().unwrap();
    Some((said.status.success(), String::from_utf8([said.stdout, said.stderr].concat()).unwrap()))
}

/// Before, the audit log named the ingress controller, and the dashboard's cookie was not `Secure`.
#[test]
fn servers_behind_an_ingress_know_their_url_and_its_addresses() {
    let server = read("helm/templates/server.yaml");
    for arg in ["- --public-url={{ . }}", "- --trusted-proxy={{ . }}"] {
        assert!(server.contains(arg), "{arg}");
    }
    let schema: serde_json::Value = serde_json::from_str(&read("helm/values.schema.json")).unwrap();
    assert_eq!(schema["if"]["properties"]["ingress"]["properties"]["enabled"]["const"], true);
    assert_eq!(schema["then"]["properties"]["trustedProxies"]["minItems"], 1);
    let ingress = ["ingress.enabled=true", "ingress.host=jobs.example.com", "ingress.tlsSecret=tls"];
    let Some((has_passed, _)) = rendered(&ingress) else { return };
    assert!(!has_passed, "an ingress needs trustedProxies");
    let (has_passed, said) = rendered(&[&ingress[..], &["trustedProxies={10.42.0.0/16}"]].concat()).unwrap();
    assert!(has_passed, "{said}");
    for arg in ["--public-url=https://jobs.example.com", "--trusted-proxy=10.42.0.0/16"] {
        assert!(said.contains(arg), "{arg}: {said}");
    }
}

/// Collects the paths that a JSON Schema describes, spelled as in [`values`].
fn described(schema: &serde_json::Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        described(property, &path, found);
        found.insert(path);
    }
}

#[test]
fn schema_and_readme_of_the_chart_name_each_value() {
    let schema: serde_json::Value = serde_json::from_str(&read("helm/values.schema.json")).unwrap();
    let (values, readme, mut found) = (values(), read("helm/README.md"), BTreeSet::new());
    described(&schema, "", &mut found);
    // Labels are the user's own, and `global` is Helm's.
    let is_fixed = |value: &&String| !value.starts_with("dashboards.labels.") && *value != "global";
    let values: BTreeSet<&String> = values.iter().filter(is_fixed).collect();
    assert_eq!(found.iter().filter(is_fixed).collect::<BTreeSet<_>>(), values);
    let is_group = |value: &String| values.iter().any(|other| other.starts_with(&format!("{value}.")));
    for value in values.iter().filter(|value| !is_group(value)) {
        assert!(readme.contains(&format!("`{value}`")), "README.md of the chart does not name `{value}`");
    }
}

#[test]
fn compose_starts_commands_with_flags_that_exist() {
    let (compose, worker) = (read("docker/compose.yaml"), read("docker/worker/Dockerfile"));
    let started = |text: &str, begin: &str| -> String {
        text.lines().map(str::trim).find(|line| line.starts_with(begin)).expect(begin).to_owned()
    };
    let serve = started(&compose, "command: [\"serve\"");
    let token = started(&compose, "entrypoint: [\"/usr/local/bin/tenure\", \"token\", \"create\"");
    let work = started(&compose, "command: [\"--queue\"");
    let alone = started(&worker, "CMD ");
    // Programs of a worker can read its command line.
    for command in [&token, &work] {
        assert!(!command.contains("*database-url"), "{command}");
    }
    let commands = compose.lines().filter(|line| line.contains("--db"));
    assert!(commands.clone().count() >= 2, "{compose}");
    for line in commands {
        assert!(line.contains("env:TENURE_DATABASE_URL"), "{line}");
    }
    for (command, text) in
        [(&["serve"][..], serve), (&["token", "create"], token), (&["worker"], work), (&["worker"], alone)]
    {
        let (help, ours) = (help(command).unwrap(), flags(&text));
        assert!(!ours.is_empty(), "{text}");
        for flag in ours {
            assert!(help.contains(&flag), "`tenure {}` has no {flag}", command.join(" "));
        }
    }
}

#[test]
fn notes_of_the_chart_name_a_command_that_exists() {
    let notes = read("helm/templates/NOTES.txt");
    let (_, said) = notes.split_once("/usr/local/bin/tenure token create ").unwrap();
    let help = help(&["token", "create"]).unwrap();
    let said = said.split("\n\n").next().unwrap();
    let ours = flags(said);
    assert!(ours.contains("--db") && ours.iter().all(|flag| help.contains(flag)), "{ours:?}");
    // Every process of the pod, and the log of the API server, would show the URL and its password.
    assert!(said.contains("--db env:TENURE_DATABASE_URL") && !notes.contains("get secret"), "{said}");
}

/// Runs a script of `contrib`. Returns its success and its output.
#[cfg(unix)]
fn run_script(script: &str, args: &[&str]) -> (bool, String) {
    let output = Command::new("bash").arg(contrib(script)).args(args).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

#[cfg(unix)]
fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
#[cfg(unix)]
fn a_release_is_packed_verified_and_installed() {
    if !["bash", "curl", "tar"].into_iter().all(is_installed) {
        return;
    }
    let (passed, printed) = run_script("release/test.sh", &[]);
    assert!(passed, "{printed}");
}

#[test]
#[cfg(unix)]
fn linters_that_are_installed_find_nothing() {
    if !is_installed("bash") {
        return;
    }
    let (passed, printed) = run_script("release/lint.sh", &[]);
    assert!(passed, "{printed}");
}

/// A release signs the result of all that it uses.
#[test]
#[cfg(unix)]
fn a_release_refuses_actions_tools_and_images_that_can_change() {
    if !is_installed("bash") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (flows, docker) = (folder.path().join(".github/workflows"), folder.path().join("contrib/docker"));
    std::fs::create_dir_all(&flows).unwrap();
    std::fs::create_dir_all(&docker).unwrap();
    let (commit, digest) = ("a1".repeat(20), format!("sha256:{}", "a1".repeat(32)));
    let refuses = |flow: &str, file: &str| {
        std::fs::write(flows.join("release.yml"), flow).unwrap();
        std::fs::write(docker.join("Dockerfile"), file).unwrap();
        let (passed, printed) = run_script("release/pinned.sh", &[folder.path().to_str().unwrap()]);
        assert_eq!(passed, printed.is_empty(), "{printed}");
        !passed
    };
    let flow = format!(
        "      - uses: a/b@{commit} # v5\n          tool: cargo-x@1.2.3\n          rustup toolchain install 1.95.0\n\
         \x20     - uses: a/setup-buildx-action@{commit}\n        with:\n          driver-opts: image=kit:1@{digest}\n\
         \x20     - uses: a/setup-helm@{commit}\n        with:\n          version: v3.1.0\n          sbom: generator=scan@{digest}\n"
    );
    let file =
        format!("FROM --platform=linux/amd64 rust:1@{digest} AS build\nFROM build AS more\nFROM scratch\n");
    assert!(!refuses(&flow, &file));
    let builder = format!("driver-opts: image=kit:1@{digest}");
    for (pinned, loose) in [
        (&format!("@{commit}")[..], "@v5"),
        ("@1.2.3", ""),
        ("1.95.0", "stable"),
        (&builder, "install: true"),
        (&builder, "driver-opts: image=kit:1"),
        ("version: v3.1.0", "version: v3"),
        ("version: v3.1.0", "x: y"),
        (&format!("generator=scan@{digest}"), "true"),
    ] {
        assert!(refuses(&flow.replace(pinned, loose), &file), "{loose}");
    }
    for (pinned, loose) in [(&format!("@{digest}")[..], ""), ("FROM build", "FROM debian"), ("a1 AS", "a AS")]
    {
        assert!(refuses(&flow, &file.replace(pinned, loose)), "{loose}");
    }
    assert!(refuses(&flow, &format!("# syntax=docker/dockerfile:1\n{file}")), "an image that reads the file");
    let workflow = std::fs::read_to_string(contrib("../.github/workflows/release.yml")).unwrap();
    assert!(workflow.contains("run: contrib/release/pinned.sh"));
}

#[test]
#[cfg(unix)]
fn an_image_with_a_program_of_thirty_mebibytes_is_not_built() {
    let docker = read("docker/Dockerfile");
    let built = docker.find("cargo build --profile dist").unwrap();
    let begin = docker.find("RUN test ").expect("the size is checked");
    assert!(built < begin && begin < docker.rfind("FROM ").unwrap(), "the size is checked after the build");
    let check = docker[begin..].lines().next().unwrap().trim_start_matches("RUN ");

    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("out")).unwrap();
    let passes = |size: Option<u64>| {
        if let Some(size) = size {
            let program = std::fs::File::create(folder.path().join("out/tenure")).unwrap();
            program.set_len(size).unwrap();
        }
        Command::new("sh").args(["-c", check]).current_dir(folder.path()).status().unwrap().success()
    };
    assert!(!passes(None), "a missing program does not pass");
    assert!(passes(Some((30 << 20) - 1)));
    assert!(!passes(Some(30 << 20)));
}
