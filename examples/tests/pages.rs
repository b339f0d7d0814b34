//! Checks that the README and the book show code that the tests compile and run.

use std::fs;
use std::path::{Path, PathBuf};

use tenure::limits;

/// The folders of the code that the pages show, with all that is in them.
const FOLDERS: [&str; 3] = ["examples/src", "examples/tests", "examples/service/src"];

/// A block of Rust on a page.
struct Block {
    page: String,
    line: usize,
    code: String,
}

#[test]
fn the_readme_shows_the_hello_that_runs() {
    let readme = blocks(&root().join("README.md"));
    let source = fs::read_to_string(root().join("examples/src/bin/hello.rs")).unwrap();
    let (_, program) = source.split_once("\n\n").expect("an example begins with its question");
    assert!(readme.iter().any(|block| block.code.trim() == program.trim()), "the README lacks hello.rs");
}

#[test]
fn every_block_of_the_guide_stands_in_an_example() {
    let sources: Vec<String> = FOLDERS
        .iter()
        .flat_map(|folder| programs(&root().join(folder)))
        .map(|path| flat(&fs::read_to_string(path).unwrap()))
        .collect();
    let mut pages = files(&root().join("docs/guide"), "md");
    pages.push(root().join("README.md"));
    let shown: Vec<Block> = pages.iter().flat_map(|page| blocks(page)).collect();
    assert!(shown.len() > 10, "the guide shows code");
    for Block { page, line, code } in shown {
        assert!(
            sources.iter().any(|source| source.contains(&flat(&code))),
            "{page}:{line}: no example has this; take the block from one, or mark it `rust,ignore`:\n{code}"
        );
    }
}

/// The page names the versions that the example takes from the workspace.
#[test]
fn the_service_on_the_page_has_the_dependencies_of_the_example() {
    let page = fs::read_to_string(root().join("docs/guide/in-your-service.md")).unwrap();
    let (_, shown) = page.split_once("```toml\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let example = fs::read_to_string(root().join("examples/service/Cargo.toml")).unwrap();
    let example: Vec<String> = dependencies(&example).map(from_registry).collect();
    assert_eq!(dependencies(shown).collect::<Vec<_>>(), example);
    let page = fs::read_to_string(root().join("docs/guide/first-job.md")).unwrap();
    let tenure = from_registry("tenure = { workspace = true, default-features = true }");
    assert!(page.lines().any(|line| line == tenure), "first-job.md does not show `{tenure}`");
}

/// The lines of the section `[dependencies]`.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let (_, rest) = manifest.split_once("[dependencies]\n").expect("the section exists");
    rest.lines().take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty())
}

/// Turns a dependency on a crate of the workspace into one on the published crate, which has the same version.
fn from_registry(line: &str) -> String {
    let Some((name, options)) = line.split_once(" = { workspace = true") else { return line.to_owned() };
    let version = env!("CARGO_PKG_VERSION");
    // A requirement matches a pre-release only if it names it; of a release, it names no patch version.
    let required = if version.contains('-') {
        version
    } else {
        version.rsplit_once('.').map_or(version, |(minor, _)| minor)
    };
    match options {
        " }" | ", default-features = true }" => format!(r#"{name} = "{required}""#),
        // The workspace turns off the default features of this crate.
        _ => format!(r#"{name} = {{ version = "{required}", default-features = false{options}"#),
    }
}

#[test]
fn the_limits_on_the_page_are_those_of_the_code() {
    let page = fs::read_to_string(root().join("docs/guide/enqueueing.md")).unwrap();
    let (_, table) = page.split_once("## Limits").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let shown = [
        ("name of", limits::NAME_BYTES),
        ("args", limits::ARGS_BYTES),
        ("args", limits::JSON_DEPTH),
        ("tags", limits::TAGS),
        ("metadata", limits::META_ENTRIES),
        ("metadata", limits::META_BYTES),
        ("metadata", limits::META_JSON_BYTES),
        ("unique key", limits::UNIQUE_KEY_BYTES),
        ("ordering, limit and share key", limits::KEY_BYTES),
        ("limit", limits::LIMIT_MOST as usize),
        ("rate", limits::RATE_TIMES as usize),
        ("jobs waited for", limits::AFTER_JOBS),
        ("attempts", limits::MAX_ATTEMPTS as usize),
        ("deliveries", limits::MAX_DELIVERIES as usize),
        ("batch", limits::BATCH_JOBS),
        ("batch", limits::BATCH_BYTES),
    ];
    for (what, limit) in shown {
        let row = table.lines().find(|line| line.starts_with(&format!("| {what}")));
        let numbers = row.unwrap().split(|c: char| !(c.is_ascii_digit() || c == ','));
        let numbers: Vec<usize> = numbers.filter_map(|text| text.replace(',', "").parse().ok()).collect();
        assert!(numbers.contains(&limit), "{what}: the page has {numbers:?}, the code {limit}");
    }
}

/// The blocks marked `rust`, without those marked `rust,ignore`.
fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).expect("a page can be read");
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match &mut open {
            None if line == "```rust" => {
                open = Some(Block { page: page.display().to_string(), line: index + 1, code: String::new() });
            }
            None => {}
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(block) => block.code = format!("{}{line}\n", block.code),
        }
    }
    blocks
}

/// The lines without their indentation, which differs between page and program.
fn flat(code: &str) -> String {
    code.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .fold(String::new(), |flat, line| flat + line + "\n")
}

/// The Rust files of a folder and of those in it.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).expect("a folder can be read");
    let inner = all.map(|entry| entry.expect("it has entries").path()).filter(|path| path.is_dir());
    inner.flat_map(|path| programs(&path)).chain(files(folder, "rs")).collect()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder)
        .expect("a folder can be read")
        .map(|entry| entry.expect("it has entries").path());
    all.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
