use super::*;

fn env(folder: &Path) -> Env {
    Env { folder: Some(folder.to_owned()), here: folder.join("here"), ..Env::default() }
}

fn saying(env: &Env, variables: &[(&str, &str)]) -> Env {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Env { variables: variables.collect(), ..env.clone() }
}

fn context(url: &str, read_only: bool) -> Context {
    Context {
        url: url.to_owned(),
        token: Some("of_the_context".to_owned()),
        token_file: None,
        read_only,
        insecure_http: false,
    }
}

fn contexts(env: &Env, current: Option<&str>, contexts: &[(&str, &str)]) {
    let contexts = contexts.iter().map(|(name, url)| ((*name).to_owned(), context(url, false)));
    let file = File { current: current.map(str::to_owned), contexts: contexts.collect() };
    file.save(env).unwrap();
}

#[test]
fn a_flag_counts_before_the_environment_that_before_a_context_and_that_before_what_is_usual() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(folder.path());
    let url = |connect: &Connect, env: &Env| {
        let settings = Settings::of(connect, env).unwrap();
        (settings.urls.value.join(","), settings.urls.origin)
    };
    let nothing = Connect::default();
    assert_eq!(url(&nothing, &env), (USUAL.to_owned(), "default".to_owned()));
    contexts(&env, Some("here"), &[("here", "http://here"), ("there", "http://there")]);
    assert_eq!(url(&nothing, &env), ("http://here".to_owned(), "context here".to_owned()));
    let named = saying(&env, &[("TENURE_CONTEXT", "there")]);
    assert_eq!(url(&nothing, &named).0, "http://there");
    let said = saying(&env, &[("TENURE_CONTEXT", "there"), ("TENURE_URL", "http://environment")]);
    assert_eq!(url(&nothing, &said), ("http://environment".to_owned(), "TENURE_URL".to_owned()));
    let connect = Connect { context: Some("here".to_owned()), ..Connect::default() };
    assert_eq!(url(&connect, &said).0, "http://here");
    let connect =
        Connect { url: vec!["http://flag/".to_owned(), "http://other".to_owned()], ..Connect::default() };
    assert_eq!(url(&connect, &said), ("http://flag,http://other".to_owned(), "--url".to_owned()));
}

#[test]
fn the_token_of_a_context_or_a_file_goes_to_no_other_server() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(folder.path());
    contexts(&env, Some("here"), &[("here", "http://here")]);
    let here = Settings::of(&Connect::default(), &env).unwrap();
    assert_eq!(here.token.unwrap().value.0.as_str(), "of_the_context");
    let elsewhere = Connect { url: vec!["http://elsewhere".to_owned()], ..Connect::default() };
    assert!(Settings::of(&elsewhere, &env).unwrap().token.is_none());
    let file = folder.path().join("named.toml");
    std::fs::write(&file, "[client]\nurl = \"http://named\"\ntoken = \"of_the_file\"").unwrap();
    let named = Connect { config: Some(file), ..Connect::default() };
    let there = Settings::of(&named, &env).unwrap();
    assert_eq!(
        (there.urls.value[0].as_str(), there.token.unwrap().value.0.as_str()),
        ("http://named", "of_the_file")
    );
    let said = saying(&env, &[("TENURE_URL", "http://environment")]);
    assert!(Settings::of(&named, &said).unwrap().token.is_none());
}

/// Before, the client sent the token and only then printed a warning.
#[test]
fn a_token_goes_to_another_machine_over_plain_http_only_if_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(folder.path());
    let token = || Some("tenure_abc".parse::<Secret>().unwrap());
    let to = |url: &str| Connect { url: vec![url.to_owned()], token: token(), ..Connect::default() };
    let told = |connect: &Connect, env: &Env| Settings::of(connect, env).unwrap().client().map(drop);
    for url in
        ["http://jobs.example.com", "HTTP://10.0.0.1:8368", "https://a,http://b", "http://127.0.0.1.evil"]
    {
        let refused = told(&to(url), &env).unwrap_err();
        assert_eq!(refused.code(), 2, "{url}");
        assert!(refused.to_string().contains("--insecure-http"), "{refused}");
        let allowed = Connect { insecure_http: true, ..to(url) };
        assert!(told(&allowed, &env).is_ok(), "{url}");
        assert!(told(&to(url), &saying(&env, &[("TENURE_INSECURE_HTTP", "true")])).is_ok(), "{url}");
        assert!(told(&Connect { token: None, ..to(url) }, &env).is_ok(), "{url}: nothing secret is sent");
    }
    for url in ["http://127.0.0.1:8368", "http://[::1]:8368", "http://localhost", "https://jobs.example.com"]
    {
        assert!(told(&to(url), &env).is_ok(), "{url}");
    }
    contexts(&env, Some("here"), &[("here", "http://here")]);
    assert!(told(&Connect::default(), &env).is_err(), "a context is no permission");
    let allowed = Context { insecure_http: true, ..context("http://here", false) };
    let file = File { current: Some("here".to_owned()), contexts: [("here".to_owned(), allowed)].into() };
    file.save(&env).unwrap();
    assert!(told(&Connect::default(), &env).is_ok());
    let named = folder.path().join("named.toml");
    let text = "[client]\nurl = \"http://named\"\ntoken = \"t\"\ninsecure_http = true";
    std::fs::write(&named, text).unwrap();
    let named = Connect { config: Some(named), ..Connect::default() };
    assert!(told(&named, &env).is_ok());
    assert!(told(&Connect { url: vec!["http://b".to_owned()], token: token(), ..named }, &env).is_err());
}

#[test]
fn a_context_that_is_not_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let connect = Connect { context: Some("nowhere".to_owned()), ..Connect::default() };
    let told = Settings::of(&connect, &env(folder.path())).unwrap_err();
    assert_eq!(told.code(), 5);
    assert!(told.to_string().contains("nowhere"));
}

#[test]
fn a_folder_that_somebody_else_has_written_names_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(folder.path());
    std::fs::create_dir_all(&env.here).unwrap();
    std::fs::write(env.here.join(HERE), "[client]\nurl = \"http://thief\"\n").unwrap();
    let settings = Settings::of(&Connect::default(), &env).unwrap();
    assert_eq!(settings.urls.value, [USUAL]);
    let faults = Resolved::of_server(&env, Layer::default(), None).faults;
    assert!(faults[0].at.ends_with("tenure.toml:2") && faults[0].what.contains("--config"), "{faults:?}");
}

#[test]
fn each_place_counts_before_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut env = env(folder.path());
    env.system = folder.path().join("system.toml");
    std::fs::create_dir_all(&env.here).unwrap();
    let of = |env: &Env, flags: Layer| {
        let resolved = Resolved::of_server(env, flags, None).sound().unwrap();
        resolved.text("server.bind").unwrap().to_owned()
    };
    let bind = |port: u16| format!("[server]\nbind = \"127.0.0.1:{port}\"\n");
    assert_eq!(of(&env, Layer::default()), "127.0.0.1:8368");
    std::fs::write(&env.system, bind(1)).unwrap();
    assert_eq!(of(&env, Layer::default()), "127.0.0.1:1");
    std::fs::write(folder.path().join("config.toml"), bind(2)).unwrap();
    assert_eq!(of(&env, Layer::default()), "127.0.0.1:2");
    std::fs::write(env.here.join(HERE), bind(3)).unwrap();
    assert_eq!(of(&env, Layer::default()), "127.0.0.1:3");
    let named = folder.path().join("named.toml");
    std::fs::write(&named, bind(4)).unwrap();
    env.variables.insert("TENURE_CONFIG".to_owned(), named.display().to_string());
    assert_eq!(of(&env, Layer::default()), "127.0.0.1:4");
    env.variables.insert("TENURE_SERVER__BIND".to_owned(), "127.0.0.1:5".to_owned());
    assert_eq!(of(&env, Layer::default()), "127.0.0.1:5");
    let spoken = Spoken { values: vec!["127.0.0.1:6".to_owned()], at: "--bind".to_owned() };
    let flags = Layer { said: [("server.bind", spoken)].into(), ..Layer::default() };
    assert_eq!(of(&env, flags), "127.0.0.1:6");
}

fn faults(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    std::fs::write(&file, text).unwrap();
    let faults = Layer::of_file(&file, Whose::Named).faults;
    let folder = format!("{}/", folder.path().display());
    faults.iter().map(|fault| fault.to_string().replace(&folder, "")).collect()
}

#[test]
fn whatever_is_wrong_in_a_file_is_told_with_its_line_and_what_was_meant() {
    let told = faults(
        "[server]\nbnid = \"127.0.0.1:1\"\nauth = \"perhaps\"\n\n[sever]\n\n[queues.mail]\npasued = true\n\
         [schedules]\nnightly = 7\n[log]\nlevel = 3\n",
    );
    let wanted = [
        ("t.toml:2: ", "unknown setting server.bnid; did you mean bind?"),
        ("t.toml:3: ", "\"perhaps\"; expected open, tokens"),
        ("t.toml:5: ", "unknown section [sever]; did you mean [server]?"),
        ("t.toml:8: ", "unknown setting queues.mail.pasued; did you mean paused?"),
        ("t.toml:10: ", "[schedules.nightly]"),
        ("t.toml:12: ", "log.level: expected a text"),
    ];
    for (line, what) in wanted {
        assert!(
            told.iter().any(|fault| fault.starts_with(line) && fault.contains(what)),
            "{line}{what}: {told:#?}"
        );
    }
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    assert!(faults("[server\n")[0].starts_with("t.toml:1: "));
    assert!(faults("[contexts.a]\nurl = \"http://a\"\n")[0].contains("tenure context add"));
}

#[test]
fn a_secret_can_stand_in_a_file_and_is_never_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("url"), "postgres://me:secret@h/jobs\n").unwrap();
    std::fs::write(folder.path().join("t.toml"), "[database]\nurl_file = \"url\"\n").unwrap();
    let resolved = Resolved::of([Layer::of_file(&folder.path().join("t.toml"), Whose::Named)]);
    assert_eq!(resolved.text("database.url"), Some("postgres://me:secret@h/jobs"));
    assert!(!format!("{resolved:?}").contains("secret"));
    let variables = |pairs: &[(&str, &str)]| saying(&Env::default(), pairs).variables;
    let file = folder.path().join("url").display().to_string();
    let layer = Layer::of_variables(&variables(&[("TENURE_DATABASE_URL_FILE", &file)]));
    assert_eq!(layer.said["database.url"].values, ["postgres://me:secret@h/jobs"]);
    assert!(faults("[database]\nurl = \"a\"\nurl_file = \"nowhere\"\n")[0].contains("nowhere"));
    assert!(
        faults("[server]\nbind_file = \"a\"\n")[0].contains("unknown setting"),
        "only secrets are said so"
    );
}

#[test]
fn a_variable_that_says_nothing_that_is_known_is_told() {
    let env = saying(
        &Env::default(),
        &[("TENURE_SERVER__BNID", "x"), ("TENURE_PORT", "tcp://a"), ("TENURE_SERVER__HOSTS", "a, b")],
    );
    let layer = Layer::of_variables(&env.variables);
    let told: Vec<String> = layer.faults.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["TENURE_SERVER__BNID: unknown setting; did you mean TENURE_SERVER__BIND?"]);
    assert_eq!(layer.said["server.hosts"].values, ["a", "b"]);
}

#[test]
fn a_secret_of_a_declaration_can_stand_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "whsec_x\n").unwrap();
    let read = |fields: &str| {
        let file = folder.path().join("t.toml");
        std::fs::write(&file, format!("[webhooks.a]\n{fields}\n")).unwrap();
        Layer::of_file(&file, Whose::Named)
    };
    let layer = read("secret_file = \"secret\"");
    assert_eq!(layer.faults, vec![]);
    assert_eq!(
        layer.declared[&("webhooks", "a".to_owned())].body,
        serde_json::json!({ "secret": "whsec_x" })
    );
    for (fields, what) in [
        ("secret_file = \"nowhere\"", "webhooks.a.secret_file"),
        ("secret_file = 7", "the path of a file"),
        ("secret = \"a\"\nsecret_file = \"secret\"", "set twice"),
        ("url_file = \"secret\"", "unknown setting webhooks.a.url_file"),
    ] {
        let told = read(fields).faults;
        assert!(told.len() == 1 && told[0].what.contains(what), "{fields}: {told:?}");
    }
}

#[test]
fn what_can_be_declared_is_what_the_routes_take() {
    let schema = schema();
    for (section, keys) in known::NAMED {
        let name = schema["properties"][section]["additionalProperties"]["$ref"].as_str().unwrap();
        let fields = &schema["$defs"][name.trim_start_matches("#/$defs/")]["properties"];
        let mut taken: Vec<&str> = fields.as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = keys.to_vec();
        // The name of a schedule is that of its section.
        taken.retain(|key| !key.ends_with("_file") && *key != "name");
        taken.sort_unstable();
        known.sort_unstable();
        assert_eq!(taken, known, "{section}");
    }
}

#[test]
fn the_schema_for_editors_knows_each_setting_and_points_to_nothing_that_is_not_there() {
    let schema = schema();
    for setting in KNOWN {
        let (section, key) = setting.parts();
        assert!(schema["properties"][section]["properties"][key].is_object(), "{}", setting.name);
    }
    let text = schema.to_string();
    assert!(!text.contains("#/components/"));
    for part in text.split("#/$defs/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schema["$defs"][name].is_object(), "{name}");
    }
}

#[test]
fn a_secret_of_a_declaration_can_be_a_reference_and_a_strangers_file_runs_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("t.toml"), folder.path().join("secret"));
    std::fs::write(&secret, "whsec_x\n").unwrap();
    let layer = |text: &str, whose: Whose| {
        std::fs::write(&file, text).unwrap();
        Layer::of_file(&file, whose)
    };
    let secret_of = |layer: &Layer| layer.declared[&("webhooks", "a".to_owned())].body["secret"].clone();
    for reference in [format!("file:{}", secret.display()), format!("cmd:cat {}", secret.display())] {
        let read = layer(&format!("[webhooks.a]\nsecret = {reference:?}\n"), Whose::Named);
        assert_eq!((secret_of(&read), read.faults), ("whsec_x".into(), vec![]), "{reference}");
    }
    let wrong = layer("[webhooks.a]\nsecret = \"env:TENURE_NOT_THERE\"\n", Whose::Named).faults;
    assert!(wrong.len() == 1 && wrong[0].what.starts_with("webhooks.a.secret: "), "{wrong:?}");
    let mark = folder.path().join("mark");
    let command = format!("cmd:touch {}", mark.display());
    std::fs::write(folder.path().join("inner"), &command).unwrap();
    let settings = ["[webhooks.a]\nsecret", "[database]\nurl", "[database]\nencryption_keys"];
    let direct = settings.map(|setting| format!("{setting} = {command:?}\n"));
    let by_file = [settings[1], settings[2]].map(|setting| format!("{setting}_file = \"inner\"\n"));
    for text in direct.into_iter().chain(by_file) {
        let told = layer(&text, Whose::Here).faults;
        assert!(told.len() == 1 && told[0].what.contains("cmd: is not allowed"), "{text}: {told:?}");
        assert!(!mark.exists(), "{text}");
    }
    for setting in ["audit_log", "audit_otlp"] {
        let told = layer(&format!("[server]\n{setting} = \"http://x\"\n"), Whose::Here).faults;
        let expected = format!("server.{setting} is not allowed");
        assert!(told.len() == 1 && told[0].what.starts_with(&expected), "{told:?}");
    }
}

/// A file in a folder that others can write must not use up the memory of this machine, either.
#[test]
fn a_settings_file_cannot_lead_to_a_device_without_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tenure.toml");
    for text in ["[database]\nurl_file = \"/dev/zero\"\n", "[webhooks.a]\nsecret_file = \"/dev/zero\"\n"] {
        std::fs::write(&file, text).unwrap();
        let told = Layer::of_file(&file, Whose::Here).faults;
        assert!(told.len() == 1 && told[0].what.ends_with("/dev/zero: not a file"), "{text}: {told:?}");
    }
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    let told = Layer::of_file(&file, Whose::Here).faults;
    assert!(told.len() == 1 && told[0].what.ends_with("not a file"), "{told:?}");
}

#[test]
fn a_token_can_be_a_reference() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "tenure_hush\n").unwrap();
    let env = saying(&Env::default(), &[("TENURE_TOKEN", &format!("file:{}", file.display()))]);
    let settings = Settings::of(&Connect::default(), &env).unwrap();
    assert_eq!(settings.token.unwrap().value, "tenure_hush".parse().unwrap());
    let env = saying(&Env::default(), &[("TENURE_TOKEN", "file:/nowhere")]);
    let told = Settings::of(&Connect::default(), &env).unwrap_err().to_string();
    assert!(told.starts_with("TENURE_TOKEN: file /nowhere: "), "{told}");
}

#[test]
fn files_for_tls_are_said_by_a_flag_a_variable_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.toml"), "[client]\nca = \"tls/ca.pem\"\nkey = \"/k\"\n")
        .unwrap();
    let env = Env { folder: Some(folder.path().to_owned()), ..Env::default() };
    let env = saying(&env, &[("TENURE_CLIENT_KEY", "v.key")]);
    let connect = Connect { client_cert: Some("flag.pem".into()), ..Connect::default() };
    let found = tls(&connect, &env, &Layer::of_variables(&env.variables));
    assert_eq!(found.ca, Some(folder.path().join("tls/ca.pem")), "as seen from the file");
    assert_eq!((found.cert, found.key), (Some("flag.pem".into()), Some("v.key".into())));
}

/// Settings with which another user could weaken the protection of a server, or change its jobs.
const WEAKENING: [&str; 22] = [
    "[server]\ntransfer_memory_mib = \"65536\"\n",
    "[queues.billing]\npaused = true\n",
    "[schedules.evil]\nspec = { every_seconds = 2 }\njob = { kind = \"pay\", queue = \"billing\" }\n",
    "[oidc]\ngroups_claim = \"nickname\"\n",
    "[oidc]\nclient_id = \"evil\"\n",
    "[server]\nsocket_group = \"users\"\n",
    "[server]\nbind = \"0.0.0.0:8368\"\n",
    "[server]\nunknown_tokens_per_minute = \"1000000\"\n",
    "[database]\nurl = \"postgres://evil.example/jobs\"\n",
    "[database]\nschema = \"evil\"\n",
    "[server]\nauth = \"open\"\n",
    "[server]\nhosts = [\"evil.example\"]\n",
    "[server]\nhide = [\"nothing\"]\n",
    "[server]\ntrusted_proxies = [\"0.0.0.0/0\"]\n",
    "[server]\nallow_callback_to = [\"0.0.0.0/0\"]\n",
    "[server]\negress_allow = [\"*.example\"]\n",
    "[server]\negress_deny = [\"a.example\"]\n",
    "[server]\ntls_key = \"key.pem\"\n",
    "[telemetry]\notlp = \"http://evil.example\"\n",
    "[database]\nencryption_keys_file = \"keys\"\n",
    "[database]\nwithout_encryption = true\n",
    "[webhooks.a]\nurl = \"https://evil.example\"\n",
];

#[test]
fn a_file_that_others_can_write_does_not_weaken_the_protection() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let env = Env { here: folder.path().to_owned(), ..Env::default() };
    let file = folder.path().join(HERE);
    std::fs::write(folder.path().join("keys"), "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let read = |text: &str, mode: u32, named: Option<&Path>| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        Resolved::of_server(&env, Layer::default(), named)
    };
    for text in WEAKENING {
        for mode in [0o666, 0o660, 0o602] {
            let read = read(text, mode, None);
            let told = read.faults.iter().map(ToString::to_string).collect::<String>();
            assert!(told.contains("other users own it or can write to it"), "{text}: {told}");
            assert!(read.chosen.is_empty() && read.declared.is_empty(), "{text}");
        }
        assert!(read(text, 0o644, None).faults.is_empty(), "{text}");
        assert!(read(text, 0o666, Some(&file)).faults.is_empty(), "{text}: named");
    }
    let harmless = "[server]\nauth = \"tokens\"\n[log]\nlevel = \"info\"\nformat = \"json\"\n";
    assert!(read(harmless, 0o666, None).faults.is_empty());
}

#[test]
fn a_link_of_another_user_does_not_make_a_file_trusted() {
    use std::os::unix::fs::{lchown, symlink};

    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make a link of another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let env = Env { here: folder.path().to_owned(), ..Env::default() };
    let (own, link) = (folder.path().join("own.toml"), folder.path().join(HERE));
    std::fs::write(&own, "[server]\nauth = \"open\"\n").unwrap();
    symlink(&own, &link).unwrap();
    let read = || Resolved::of_server(&env, Layer::default(), None);
    assert!(read().faults.is_empty());
    lchown(&link, Some(65_534), None).unwrap();
    let told = read().faults.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("other users own it or can write to it"), "{told}");
}

#[test]
fn keys_of_a_file_that_is_wrong_anywhere_are_not_silently_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let env =
        Env { here: folder.path().join("here"), folder: Some(folder.path().to_owned()), ..Env::default() };
    std::fs::create_dir(&env.here).unwrap();
    let keys = "[database]\nencryption_keys = \"file:/etc/tenure/keys\"\n";
    let place = |env: &Env, named: Option<&Path>| {
        Resolved::of_store(env, named)
            .map(|settings| settings.text("database.encryption_keys").map(str::to_owned))
    };
    std::fs::write(env.here.join(HERE), keys).unwrap();
    assert_eq!(place(&env, None).unwrap().as_deref(), Some("file:/etc/tenure/keys"));
    std::fs::write(env.here.join(HERE), "").unwrap();
    let named = folder.path().join("named.toml");
    std::fs::write(&named, keys).unwrap();
    assert_eq!(place(&env, Some(&named)).unwrap().as_deref(), Some("file:/etc/tenure/keys"));
    for broken in [format!("{keys}[log"), format!("{keys}[log]\nlevle = \"warn\"")] {
        std::fs::write(folder.path().join("config.toml"), broken).unwrap();
        assert_eq!(place(&env, None).unwrap_err().code(), 7);
    }
}
