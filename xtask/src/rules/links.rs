//! A link in the documentation leads somewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::TextFile;

/// The repository as the book links to it: pages outside of the book are not part of the site that is built from it.
const REPOSITORY: &[&str] =
    &["https://github.com/tenure-rs/tenure/blob/main/", "https://github.com/tenure-rs/tenure/tree/main/"];
const BOOK: &str = "docs/guide/";

/// Every link of a Markdown file to a missing file or folder of the repository, each with a sentence. The book links to
/// its own pages by relative paths, and to everything else by URL. Other links are not followed.
pub fn refused(file: &TextFile, paths: &BTreeSet<String>) -> Vec<String> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    links(&file.text)
        .into_iter()
        .filter_map(|(line, target)| {
            let mistake = mistake(&file.path, &target, paths)?;
            Some(format!("{}:{line}: the link to `{target}` {mistake}", file.path))
        })
        .collect()
}

fn mistake(from: &str, target: &str, paths: &BTreeSet<String>) -> Option<&'static str> {
    if let Some(path) = in_repository(target) {
        return (!leads_somewhere("", path, paths)).then_some("leads nowhere");
    }
    if !is_relative(target) {
        return None;
    }
    if !leads_somewhere(from, target, paths) {
        return Some("leads nowhere");
    }
    let leaves = from.starts_with(BOOK) && !resolve(from, target)?.starts_with("docs/guide");
    leaves.then_some("leaves the book: link to it by its URL")
}

/// The path of a URL of this repository.
fn in_repository(target: &str) -> Option<&str> {
    REPOSITORY.iter().find_map(|prefix| target.strip_prefix(prefix))
}

/// Every link to a missing heading of a Markdown file, each with a sentence.
pub fn missing_headings(files: &[TextFile]) -> Vec<String> {
    let pages: BTreeMap<&str, BTreeSet<String>> = files
        .iter()
        .filter(|file| file.path.ends_with(".md"))
        .map(|file| (file.path.as_str(), slugs(&file.text)))
        .collect();
    let mut missing = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in links(&file.text) {
            let (from, path) = match in_repository(&target) {
                Some(path) => ("", path),
                None if is_relative(&target) || target.starts_with('#') => {
                    (file.path.as_str(), target.as_str())
                }
                None => continue,
            };
            let Some((path, heading)) = path.split_once('#') else { continue };
            let page = if path.is_empty() { Some(from.to_owned()) } else { resolve(from, path) };
            let headings = page.and_then(|page| pages.get(page.as_str()));
            if headings.is_some_and(|headings| !headings.contains(heading)) {
                missing.push(format!("{}:{line}: the link to `{target}` names no heading there", file.path));
            }
        }
    }
    missing
}

/// The anchors that GitHub and mdBook give to the headings of a page.
fn slugs(text: &str) -> BTreeSet<String> {
    let mut slugs = BTreeSet::new();
    let mut in_fence = false;
    for line in text.lines() {
        in_fence ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if in_fence || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let text = links_of(heading)
            .iter()
            .fold(heading.to_owned(), |text, link| text.replace(&format!("]({link})"), ""));
        let kept = text.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect();
        let again = (1..).map(|count| format!("{slug}-{count}")).find(|again| !slugs.contains(again));
        let slug = if slugs.contains(&slug) { again.unwrap_or_default() } else { slug };
        slugs.insert(slug);
    }
    slugs
}

/// The targets of `[text](target)` and `[label]: target`, outside of code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            continue;
        }
        links.extend(links_of(&without_code(line)).into_iter().map(|target| (index + 1, target)));
    }
    links
}

fn links_of(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let reference =
        line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, rest)| rest);
    // A title may follow the target: [text](target "title").
    inline.chain(reference).filter_map(|target| target.split_whitespace().next()).map(String::from).collect()
}

/// The line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn is_relative(target: &str) -> bool {
    let has_scheme =
        target.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(char::is_alphanumeric));
    !has_scheme && !target.starts_with('#')
}

fn leads_somewhere(from: &str, target: &str, paths: &BTreeSet<String>) -> bool {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    let Some(path) = resolve(from, target) else {
        return false;
    };
    let folder = format!("{path}/");
    path.is_empty() || paths.contains(&path) || paths.iter().any(|known| known.starts_with(&folder))
}

/// The path that a link in a file means, or nothing if it climbs out of the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').rev().skip(1).collect::<Vec<_>>().into_iter().rev().collect(),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
