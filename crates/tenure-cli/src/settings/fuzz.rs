//! Fuzz target of settings files in folders that others can write.

use tenure_fuzz::Target;

use super::Layer;
use super::layers::Whose;

#[test]
fn a_file_in_a_folder_of_others_runs_nothing_and_each_fault_has_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (file, mark) = (folder.path().join("tenure.toml"), folder.path().join("mark"));
    let words = &[
        "[server]\n",
        "[database]\n",
        "[client]\n",
        "[webhooks.a]\n",
        "[queues.mail]\n",
        "[schedules.nightly]\n",
        "[telemetry]\n",
        "url = ",
        "secret = ",
        "audit_log = ",
        "audit_otlp = ",
        "\"cmd:touch mark\"",
        "secret_file = \"mark\"",
        "true",
        "\"\"\"",
        "'",
        "[",
        "]",
        "{",
        "}",
        " = ",
        "\n",
        ".",
        "1979-05-27",
        "0x",
        "inf",
        "\\u",
        "#",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "settings").words(words).check_text(|text| {
        std::fs::write(&file, text).unwrap();
        let layer = Layer::of_file(&file, Whose::Here);
        assert!(!mark.exists());
        assert!(
            layer.said.keys().all(|name| !name.starts_with("client.") && !name.starts_with("server.audit_"))
        );
        let lines = text.split('\n').count();
        for fault in &layer.faults {
            let (_, line) = fault.place();
            assert!((1..=lines).contains(&line), "{fault}");
            assert!(!fault.to_string().chars().any(char::is_control), "{fault}");
        }
        let said: Vec<&str> = layer.said.keys().copied().collect();
        format!(
            "{said:?} {:?} {:?}",
            layer.declared.keys().next(),
            layer.faults.first().map(|fault| &fault.what)
        )
    });
}
