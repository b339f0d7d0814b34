//! What programs may become.
#![cfg(target_os = "linux")]

use crate::apps::stand::Stand;

#[test]
fn no_program_gets_more_rights_than_it_has_if_it_or_its_host_says_so() {
    let look = "grep NoNewPrivs /proc/self/status >> $OUT/$WEBJOBS_NAME";
    let stand = Stand::of(&[
        ("triggered/free/run.sh", look),
        ("triggered/bound/run.sh", look),
        ("triggered/bound/settings.job", r#"{"no_new_privs":true}"#),
    ]);
    for (host, expected) in [(&[][..], ["0", "1"]), (&["--no-new-privs"], ["1", "1"])] {
        let _host = stand.host(host);
        for (name, expected) in ["free", "bound"].into_iter().zip(expected) {
            assert_eq!(stand.app(&["run", "--wait", name]).code, 0);
            let lines = stand.left_lines(name);
            assert_eq!(lines.last().unwrap(), &format!("NoNewPrivs:\t{expected}"), "{name} {host:?}");
        }
    }
}
