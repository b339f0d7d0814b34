//! What the chart for Kubernetes says to the program is understood by it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(dead_code, reason = "it uses a part of what the tests of the program share")]

mod program;

use program::run;
use tempfile::tempdir;

const CHART: &str = include_str!("../../../contrib/helm/templates/server.yaml");

#[test]
fn the_program_knows_every_flag_and_variable_of_the_chart() {
    let folder = tempdir().unwrap();
    let help = String::from_utf8(run(&["serve", "--help"], folder.path()).stdout).unwrap();
    let flags: Vec<&str> =
        CHART.lines().filter_map(|line| line.trim().strip_prefix("- --")?.split('=').next()).collect();
    assert!(flags.len() >= 7, "{flags:?}");
    for flag in flags {
        assert!(help.contains(&format!("--{flag} ")), "--{flag} is not a flag of `tenure serve`");
    }
    let variables: Vec<&str> =
        CHART.lines().filter_map(|line| line.trim().strip_prefix("- name: TENURE_")).collect();
    assert!(!variables.is_empty());
    for variable in variables {
        assert!(help.contains(&format!("[env: TENURE_{variable}")), "TENURE_{variable} is not read");
    }
}

#[test]
fn the_chart_asks_whether_it_lives_where_the_program_says_so() {
    let folder = tempdir().unwrap();
    let paths = CHART.lines().filter_map(|line| line.split("path: ").nth(1)?.split(',').next());
    let described = String::from_utf8(run(&["openapi"], folder.path()).stdout).unwrap();
    let mut count = 0;
    for path in paths.filter(|path| path.starts_with('/')) {
        assert!(described.contains(&format!("\"{path}\"")), "{path} is no path of the server");
        count += 1;
    }
    assert_eq!(count, 3, "a probe for the start, one for life, one for readiness");
}
