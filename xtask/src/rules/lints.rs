//! Every crate is held to the lints of the workspace, and none of them has unsafe code.

/// What is missing from the manifest of the workspace, each with a sentence.
pub fn refused_in_workspace(manifest: &str) -> Vec<String> {
    let wanted = [
        ("[workspace.lints.rust]", "unsafe_code = \"forbid\""),
        ("[workspace.lints.rust]", "missing_docs = \"deny\""),
        ("[workspace.lints.clippy]", "disallowed_methods = \"deny\""),
        ("[workspace.lints.clippy]", "unwrap_used = \"deny\""),
    ];
    wanted
        .into_iter()
        .filter(|(section, line)| !lines_of(manifest, section).any(|found| found == *line))
        .map(|(section, line)| format!("Cargo.toml: {section} must say `{line}`"))
        .collect()
}

/// What is wrong with the manifest of a crate, each with a sentence.
pub fn refused_in_crate(path: &str, manifest: &str) -> Vec<String> {
    let inherits = lines_of(manifest, "[lints]").any(|line| line == "workspace = true");
    let own = manifest.lines().any(|line| line.trim().starts_with("[lints."));
    let mut refused = Vec::new();
    if !inherits || own {
        refused.push(format!(
            "{path}: a crate has the lints of the workspace and no others: [lints] workspace = true"
        ));
    }
    refused
}

/// The lines between a section's heading and the next one.
fn lines_of<'a>(manifest: &'a str, section: &'a str) -> impl Iterator<Item = &'a str> {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(move |line| *line != section)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
}
