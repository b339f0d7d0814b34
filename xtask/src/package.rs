//! `package`: packs every published crate and rehearses publishing them.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::check;
use crate::failure::Failure;

/// Files that every package has to contain.
const FILES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE", "README.md"];
/// Pages that name the oldest supported Rust, as `Rust 1.94 or newer`.
const PAGES: &[&str] =
    &["README.md", "CONTRIBUTING.md", "crates/tenure/README.md", "adapters/tenure-sqlx/README.md"];
/// The most keywords that crates.io accepts.
const MOST_KEYWORDS: usize = 5;
/// The longest description that fits in a list of search results.
const LONGEST_DESCRIPTION: usize = 90;
/// Parts of cargo's messages about a registry that cannot be reached.
const OUT_OF_REACH: &[&str] = &[
    "resolve host",
    "failed to download",
    "failed to fetch",
    "network failure",
    "download of config.json failed",
];

/// The extent of the package checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Manifests, contents and order; nothing is compiled.
    Contents,
    /// Also that each package compiles from its archive alone, which takes minutes.
    Build,
}

/// The checks of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The extent of the package checks.
    pub depth: Depth,
    /// Fails if the registry cannot be reached. Otherwise the packages are then packed without a rehearsal.
    pub needs_registry: bool,
}

impl Package {
    /// Reads `--build` and `--online`, which are optional.
    pub fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut package = Self { depth: Depth::Contents, needs_registry: false };
        for arg in args {
            match arg.as_str() {
                "--build" => package.depth = Depth::Build,
                "--online" => package.needs_registry = true,
                other => {
                    let allowed = "expected --build or --online";
                    return Err(Failure::usage(format!("unknown option `{other}` of package; {allowed}")));
                }
            }
        }
        Ok(package)
    }
}

/// Checks the manifests and the contents of all packages, then packs them and rehearses publishing.
///
/// Cargo packs them in the order in which they are published, and each against the packages before it. If the registry
/// cannot be reached and is not needed, they are only packed.
pub fn run(root: &Path, Package { depth, needs_registry }: Package) -> Result<(), Failure> {
    let all = metadata(root)?;
    let mut refused = refused_versions(&all);
    let promised = members(&all).find_map(|package| package["rust_version"].as_str()).unwrap_or_default();
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page))
            .map_err(|error| Failure::check(format!("{page} could not be read: {error}")))?;
        refused.extend(refused_page(page, &text, promised));
    }
    for package in published(&all) {
        let name = package["name"].as_str().unwrap_or_default();
        let listed =
            stdout(cargo(root, &["package", "--list", "--allow-dirty", "--offline", "--package", name])?)?;
        refused.extend(refused_package(package, &listed.lines().collect::<Vec<_>>()));
    }
    if !refused.is_empty() {
        return Err(Failure::check(refused.join("\n")));
    }
    let rehearsal = ["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty", "--locked"];
    let output = cargo(root, &rehearsal)?;
    let is_offline = !needs_registry && is_out_of_reach(&output);
    if is_offline {
        println!("the registry is out of reach: packing without a rehearsal");
    } else {
        stdout(output)?;
    }
    if is_offline || depth == Depth::Build {
        let mut packing = vec!["package", "--workspace", "--allow-dirty", "--locked"];
        packing.extend(unpublished(&all).flat_map(|name| ["--exclude", name]));
        packing.extend(is_offline.then_some("--offline"));
        packing.extend((depth == Depth::Contents).then_some("--no-verify"));
        stdout(cargo(root, &packing)?)?;
    }
    println!("{} packages are ready to be published", published(&all).count());
    Ok(())
}

fn metadata(root: &Path) -> Result<Value, Failure> {
    let text = stdout(cargo(root, &["metadata", "--format-version", "1", "--locked"])?)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::check(format!("cargo metadata is not JSON: {error}")))
}

fn cargo(root: &Path, args: &[&str]) -> Result<Output, Failure> {
    check::cargo(root)
        .args(args)
        .output()
        .map_err(|error| Failure::check(format!("cargo did not start: {error}")))
}

fn stdout(output: Output) -> Result<String, Failure> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Failure::check(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

fn is_out_of_reach(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stderr).to_lowercase();
    !output.status.success() && OUT_OF_REACH.iter().any(|words| text.contains(words))
}

/// The packages of the workspace; those of others have a source.
fn members(metadata: &Value) -> impl Iterator<Item = &Value> {
    packages(metadata).filter(|package| package["source"].is_null())
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// `publish = false` is an empty list of registries.
fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

fn published(metadata: &Value) -> impl Iterator<Item = &Value> {
    members(metadata).filter(|package| is_published(package))
}

fn unpublished(metadata: &Value) -> impl Iterator<Item = &str> {
    members(metadata).filter(|package| !is_published(package)).filter_map(|package| package["name"].as_str())
}

/// Returns a sentence for everything that a published package lacks; `listed` are the files in it.
pub fn refused_package(package: &Value, listed: &[&str]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let mut refused = Vec::new();
    let mut refuse = |sentence: &str| refused.push(format!("{name}: {sentence}"));
    for file in FILES.iter().filter(|file| !listed.contains(file)) {
        refuse(&format!("the package has no {file}"));
    }
    if listed.iter().any(|file| file.starts_with("tests/")) {
        refuse("the package contains its tests: exclude = [\"/tests\"]");
    }
    for field in ["license", "repository", "readme", "rust_version"] {
        if package[field].is_null() {
            refuse(&format!("the manifest has no {field}"));
        }
    }
    let description = package["description"].as_str().unwrap_or_default();
    if description.is_empty() || description.chars().count() > LONGEST_DESCRIPTION {
        refuse(&format!("the description has to be 1 to {LONGEST_DESCRIPTION} characters long"));
    }
    let count = |field: &str| package[field].as_array().map_or(0, Vec::len);
    if !(1..=MOST_KEYWORDS).contains(&count("keywords")) {
        refuse(&format!("the manifest needs 1 to {MOST_KEYWORDS} keywords"));
    }
    if count("categories") == 0 {
        refuse("the manifest has no categories");
    }
    let is_library =
        package["targets"].as_array().into_iter().flatten().any(|target| target["kind"][0] == "lib");
    if is_library && package["metadata"]["docs"]["rs"].is_null() {
        refuse("the manifest has no [package.metadata.docs.rs]");
    }
    refused
}

/// Returns a sentence for every package that needs a newer Rust than the workspace promises.
pub fn refused_versions(metadata: &Value) -> Vec<String> {
    let version = |package: &Value| package["rust_version"].as_str().map(numbers);
    let Some(promised) = members(metadata).filter_map(version).min() else {
        return vec!["Cargo.toml: no crate has a rust-version".to_owned()];
    };
    packages(metadata)
        .filter(|package| version(package).is_some_and(|needed| needed > promised))
        .map(|package| {
            let text = |field: &str| package[field].as_str().unwrap_or_default();
            let promised: Vec<String> = promised.iter().map(u64::to_string).collect();
            let (name, needed) = (text("name"), text("rust_version"));
            format!(
                "{name} {} needs Rust {needed}, the workspace promises {}",
                text("version"),
                promised.join(".")
            )
        })
        .collect()
}

/// Returns a sentence if a page does not name the promised Rust, or names another one.
pub fn refused_page(page: &str, text: &str, promised: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("Rust") && line.contains(" or newer"));
    let named: Vec<&str> = lines
        .filter_map(|line| line.split(" or newer").next()?.split([' ', '*']).next_back())
        .filter(|word| word.starts_with("1."))
        .collect();
    match named.as_slice() {
        [] => vec![format!("{page} does not say `Rust {promised} or newer`")],
        named => named
            .iter()
            .filter(|version| **version != promised)
            .map(|version| format!("{page} says Rust {version}, Cargo.toml says {promised}"))
            .collect(),
    }
}

/// `1.94` is older than `1.94.1`, and as new as `1.94.0`.
fn numbers(version: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    numbers.resize(3, 0);
    numbers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        json!({
            "name": "tenure", "version": "0.1.0", "source": null, "publish": null, "license": "MIT", "repository": "r",
            "readme": "README.md", "rust_version": "1.94", "description": "d", "keywords": ["jobs"],
            "categories": ["database"], "targets": [{ "kind": ["lib"] }], "metadata": { "docs": { "rs": {} } },
        })
    }

    #[test]
    fn a_complete_package_passes() {
        let listed = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"];
        assert_eq!(refused_package(&good(), &listed), [""; 0]);
        let with_tests = [&listed[..], &["tests/it/main.rs"]].concat();
        assert_eq!(refused_package(&good(), &with_tests).len(), 1);
    }

    #[test]
    fn each_missing_file_and_field_is_named() {
        assert_eq!(refused_package(&good(), &[]).len(), FILES.len());
        for field in [
            "license",
            "repository",
            "readme",
            "rust_version",
            "description",
            "keywords",
            "categories",
            "metadata",
        ] {
            let mut package = good();
            package[field] = Value::Null;
            let refused = refused_package(&package, FILES);
            assert_eq!(refused.len(), 1, "{field}: {refused:?}");
        }
        let mut wordy = good();
        wordy["keywords"] = json!(["a", "b", "c", "d", "e", "f"]);
        assert_eq!(refused_package(&wordy, FILES), ["tenure: the manifest needs 1 to 5 keywords"]);
    }

    #[test]
    fn a_dependency_that_needs_a_newer_rust_is_named() {
        let with = |needed: Value| {
            let other =
                json!({ "name": "other", "version": "2.0.0", "source": "registry", "rust_version": needed });
            refused_versions(&json!({ "packages": [good(), other] }))
        };
        for fine in [json!("1.94"), json!("1.94.0"), json!("1.9"), json!("1.65.0"), Value::Null] {
            assert_eq!(with(fine.clone()), [""; 0], "{fine}");
        }
        assert_eq!(with(json!("1.94.1")), ["other 2.0.0 needs Rust 1.94.1, the workspace promises 1.94.0"]);
        assert_eq!(with(json!("1.100")).len(), 1);
        assert_eq!(refused_versions(&json!({ "packages": [] })).len(), 1);
    }

    #[test]
    fn a_page_names_the_rust_of_the_manifest() {
        let refused = |text: &str| refused_page("README.md", text, "1.94");
        assert_eq!(refused("You need Rust 1.94 or newer, and a C compiler."), [""; 0]);
        assert_eq!(refused("* **Rust** 1.94 or newer (MSRV)."), [""; 0]);
        assert_eq!(
            refused("You need Rust 1.89 or newer."),
            ["README.md says Rust 1.89, Cargo.toml says 1.94"]
        );
        assert_eq!(refused("You need Rust.").len(), 1);
    }

    #[test]
    fn options_are_read_in_any_order() {
        let parse = |args: &[&str]| {
            Package::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()).ok()
        };
        let all = Some(Package { depth: Depth::Build, needs_registry: true });
        assert_eq!(parse(&["--build", "--online"]), all);
        assert_eq!(parse(&["--online", "--build"]), all);
        assert_eq!(parse(&[]), Some(Package { depth: Depth::Contents, needs_registry: false }));
        assert_eq!(parse(&["--offline"]), None);
    }

    #[test]
    fn packages_that_are_not_published_are_told_apart() {
        let mut private = good();
        private["publish"] = json!([]);
        private["name"] = json!("xtask");
        let metadata = json!({ "packages": [good(), private] });
        assert_eq!(published(&metadata).count(), 1);
        assert_eq!(unpublished(&metadata).collect::<Vec<_>>(), ["xtask"]);
    }
}
