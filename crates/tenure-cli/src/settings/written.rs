//! Changing the file of a person's settings: what he has written stays as it is, with its comments and in its order.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike, Value, value};

use super::{Context, File};
use crate::exit::Failure;
use crate::files;

/// Links that lead to a file, one behind the other.
const MOST_LINKS: usize = 40;

/// The text with what `file` says of contexts, and all else as it was.
pub(super) fn changed(text: &str, file: &File) -> Result<String, Failure> {
    let odd = |why: &str| Failure::Invalid(format!("cannot change the settings file: {why}"));
    let mut document: DocumentMut = text.parse().map_err(|_| odd("it is not valid TOML"))?;
    set(document.as_table_mut(), "current", file.current.clone().map(Value::from));
    if file.contexts.is_empty() && !document.contains_key("contexts") {
        return Ok(document.to_string());
    }
    let contexts = document.entry("contexts").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let contexts = contexts.as_table_like_mut().ok_or_else(|| odd("contexts is not a table"))?;
    let gone =
        contexts.iter().map(|(name, _)| name.to_owned()).filter(|name| !file.contexts.contains_key(name));
    for name in gone.collect::<Vec<_>>() {
        contexts.remove(&name);
    }
    for (name, context) in &file.contexts {
        if !contexts.contains_key(name) {
            contexts.insert(name, Item::Table(Table::new()));
        }
        let there = contexts.get_mut(name).and_then(Item::as_table_like_mut);
        write(there.ok_or_else(|| odd("a context is not a table"))?, context);
    }
    Ok(document.to_string())
}

fn write(there: &mut dyn TableLike, context: &Context) {
    let file = context.token_file.as_ref().map(|file| file.display().to_string());
    set(there, "url", Some(context.url.as_str().into()));
    set(there, "token", context.token.as_deref().map(Value::from));
    set(there, "token_file", file.map(Value::from));
    for (key, is_so) in [("read_only", context.read_only), ("insecure_http", context.insecure_http)] {
        let says_it = is_so || there.contains_key(key);
        set(there, key, says_it.then(|| is_so.into()));
    }
}

/// Sets, leaves or removes one value; what stands behind it on its line stays.
fn set(table: &mut dyn TableLike, key: &str, to: Option<Value>) {
    let Some(mut to) = to else {
        table.remove(key);
        return;
    };
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) if same(there, &to) => {}
        Some(there) => {
            *to.decor_mut() = there.decor().clone();
            *there = to;
        }
        None => _ = table.insert(key, value(to)),
    }
}

fn same(one: &Value, other: &Value) -> bool {
    one.as_str().zip(other.as_str()).is_some_and(|(one, other)| one == other)
        || one.as_bool().zip(other.as_bool()).is_some_and(|(one, other)| one == other)
}

/// Puts a text in the place of a file, whole or not at all. A link stays one: what it leads to is replaced.
pub(super) fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = &behind(path)?;
    if let Some(folder) = path.parent() {
        files::create_private_folder(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    let written = files::private_file()
        .create_new(true)
        .open(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    let done = written.and_then(|()| std::fs::rename(&new, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    done
}

/// Where links lead, whether there is a file yet or not.
fn behind(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            // As seen from the folder in which the link is.
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> File {
        toml::from_str(text).unwrap()
    }

    fn context(url: &str) -> Context {
        Context { url: url.to_owned(), token: None, token_file: None, read_only: false, insecure_http: false }
    }

    const WRITTEN: &str = "# Mine.\ncurrent = \"b\" # the one for work\n\n[log]\n# More.\nlevel = \"info\"\n\n\
        [contexts.b]\n# Asked daily.\nurl = \"http://b\" # no https yet\nread_only = false\n\n\
        [contexts.a]\nurl = \"http://a\"\n";

    #[test]
    fn what_a_person_has_written_stays_in_its_order_with_its_comments() {
        assert_eq!(changed(WRITTEN, &read(WRITTEN)).unwrap(), WRITTEN);
        let mut file = read(WRITTEN);
        file.current = Some("a".to_owned());
        let used = changed(WRITTEN, &file).unwrap();
        assert_eq!(used, WRITTEN.replace("current = \"b\" #", "current = \"a\" #"));
        file.contexts.insert("b".to_owned(), Context { read_only: true, ..context("https://b") });
        file.contexts.insert("new one".to_owned(), context("http://new"));
        let added = changed(&used, &file).unwrap();
        let wanted = used.replace("http://b", "https://b").replace("read_only = false", "read_only = true");
        assert_eq!(added, format!("{wanted}\n[contexts.\"new one\"]\nurl = \"http://new\"\n"));
        file.contexts.remove("b");
        let removed = changed(&added, &file).unwrap();
        assert!(removed.starts_with("# Mine.") && removed.contains("# More."), "{removed}");
        assert_eq!(read(&removed).contexts.keys().collect::<Vec<_>>(), ["a", "new one"]);
    }

    #[test]
    fn contexts_in_one_line_and_none_at_all_are_changed_as_well() {
        let mut file = read("contexts = { a = { url = \"http://a\" } }\n");
        file.contexts.insert("b".to_owned(), context("http://b"));
        let text = changed("contexts = { a = { url = \"http://a\" } }\n", &file).unwrap();
        assert_eq!(read(&text).contexts["b"].url, "http://b", "{text}");
        assert_eq!(changed("", &File::default()).unwrap(), "");
        file.current = Some("a".to_owned());
        let text = changed("# Head.\n[log]\nlevel = \"info\"\n", &file).unwrap();
        assert!(text.contains("# Head.\n[log]") && read(&text).current.is_some(), "{text}");
        assert!(changed("contexts = 7", &file).is_err());
    }

    #[test]
    fn a_link_to_the_file_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (link, other) = (folder.path().join("config.toml"), folder.path().join("kept"));
        std::fs::create_dir(&other).unwrap();
        let file = other.join("mine.toml");
        std::os::unix::fs::symlink("kept/mine.toml", &link).unwrap();
        for text in ["one", "two"] {
            replace(&link, text).unwrap();
            assert!(link.is_symlink(), "{text}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        std::os::unix::fs::symlink("round", folder.path().join("round")).unwrap();
        assert!(replace(&folder.path().join("round"), "three").is_err());
    }
}
