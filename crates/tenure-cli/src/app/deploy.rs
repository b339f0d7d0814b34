//! `tenure app deploy` and `tenure app rm`: programs come into the folder of a host, and go, each as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tenure_apps::{App, Folder, Sort, check_name, root_of};
use tenure_program::{ScratchFolder, remove_folder};

use super::copying::{self, Outward};
use super::links;
use super::run::is_installed;
use super::unpack::unpack;
use crate::exit::Failure;
use crate::output::{Out, safe};

/// What is made beside the programs begins so; no host takes it for one of them.
const BESIDE: &str = ".tenure-deploy-";

/// Arguments of `tenure app deploy`.
#[derive(Debug, Args)]
pub(super) struct Deploy {
    /// Folder or zip with triggered/NAME and continuous/NAME, or one program with --as
    source: PathBuf,
    /// Folder of programs that hosts run
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Deploy the source as this program, such as triggered/report
    #[arg(long = "as", value_name = "SORT/NAME", value_parser = place)]
    as_one: Option<(Sort, String)>,
}

/// Arguments of `tenure app rm`.
#[derive(Debug, Args)]
pub(super) struct Remove {
    /// Program, as triggered/NAME or continuous/NAME
    #[arg(value_name = "SORT/NAME", value_parser = place)]
    which: (Sort, String),
    /// Folder of programs that hosts run
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
}

fn place(said: &str) -> Result<(Sort, String), String> {
    let (sort, name) = said.split_once('/').ok_or("expected triggered/NAME or continuous/NAME")?;
    let sort = Sort::of(sort).ok_or("expected triggered/NAME or continuous/NAME")?;
    check_name(name).map_err(|wrong| wrong.to_string())?;
    Ok((sort, name.to_owned()))
}

/// Brings programs into a folder. Each is there as a whole or not at all, whatever happens meanwhile. One that cannot run here
/// keeps none of the others from being brought.
pub(super) fn deploy(deploy: &Deploy, out: &mut Out) -> Result<(), Failure> {
    let beside = Beside::new(&deploy.to)?;
    let staged = beside.path().join("package");
    // One program lies where a host would look for it, so that it is read as a host reads it.
    let files = match &deploy.as_one {
        Some((sort, name)) => staged.join(sort.word()).join(name),
        None => staged.clone(),
    };
    let source = deploy.source.display();
    let kind = fs::metadata(&deploy.source)
        .map_err(|error| Failure::NotThere(format!("cannot read {source}: {error}")))?;
    let copied = if kind.is_dir() {
        copying::copy((&deploy.source, 0), &files, Outward::Refused, &AtomicBool::new(false))
    } else if kind.is_file() {
        unpack(&deploy.source, &files)
    } else {
        Err(io::Error::other("neither a folder nor a zip file"))
    };
    copied.map_err(|why| {
        Failure::Invalid(format!("nothing was deployed: {source}: {}", safe::line(&why.to_string())))
    })?;
    let folder = tenure_apps::read(&staged, None, &is_installed)
        .map_err(|error| Failure::Invalid(beside.without(&error.to_string())))?;
    let (found, left) = sorted(&folder, &staged, &beside, &deploy.to)?;
    if found.is_empty() {
        return Err(Failure::Invalid(format!("nothing was deployed: {}", safe::line(&left.join("; ")))));
    }
    for app in found {
        for note in &app.notes {
            out.tell(&format!("{}/{}: {}", app.sort, app.name, safe::line(note)));
        }
        let is_new = beside.bring(app, &deploy.to)?;
        let words = if is_new { "deployed" } else { "replaced" };
        out.line(&format!("{}/{} {words}", app.sort, safe::line(&app.name)))?;
    }
    for stray in &folder.strays {
        out.tell(&safe::line(&beside.without(stray)));
    }
    for why in &left {
        out.tell(&format!("not deployed: {}", safe::line(why)));
    }
    out.tell("hosts read the folder when they start: restart them to run the new version");
    beside.end()?;
    match left.len() {
        0 => Ok(()),
        1 => Err(Failure::Unsuccessful("1 program was not deployed; the others were".to_owned())),
        left => Err(Failure::Unsuccessful(format!("{left} programs were not deployed; the others were"))),
    }
}

/// Takes a program out of a folder. What it has kept for its next run stays.
pub(super) fn remove(remove: &Remove, out: &mut Out) -> Result<(), Failure> {
    let (sort, name) = &remove.which;
    let path = root_of(&remove.from, None, *sort).join(name);
    if path.symlink_metadata().is_err() {
        let why = format!("{sort}/{} not found in {}", safe::line(name), remove.from.display());
        return Err(Failure::NotThere(why));
    }
    let beside = Beside::new(&remove.from)?;
    // Gone at once, and removed piece by piece afterwards.
    let fail = |source| Failure::Output { path: path.clone(), source };
    fs::rename(&path, beside.path().join("gone")).map_err(fail)?;
    out.line(&format!("deleted {sort}/{}", safe::line(name)))?;
    out.tell("running hosts keep it until they restart; stop it there with `tenure app stop`");
    beside.end()
}

/// The programs of a package that can run here, and what cannot, each with the reason.
fn sorted<'a>(
    folder: &'a Folder,
    staged: &Path,
    beside: &Beside,
    to: &Path,
) -> Result<(Vec<&'a App>, Vec<String>), Failure> {
    if staged.join("tenure.toml").symlink_metadata().is_ok() {
        let why = "a package must not contain a tenure.toml: that file belongs to the whole folder";
        return Err(Failure::Invalid(why.to_owned()));
    }
    if folder.apps.is_empty() {
        let why = "neither triggered/NAME nor continuous/NAME found; pass --as triggered/NAME to deploy one program";
        return Ok((Vec::new(), vec![why.to_owned()]));
    }
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for app in &folder.apps {
        let mut whys: Vec<String> = app.wrong.iter().map(|why| beside.without(why)).collect();
        whys.extend(differs_in_case(app, to)?);
        whys.extend(leads_out(app)?);
        match whys.as_slice() {
            [] => found.push(app),
            whys => left.push(format!("{}/{}: {}", app.sort, app.name, whys.join("; "))),
        }
    }
    left.extend(folder.notes.iter().map(|note| beside.without(note)));
    Ok((found, left))
}

/// That a program would stand beside one whose name is the same on other systems, if it would.
fn differs_in_case(app: &App, to: &Path) -> Result<Option<String>, Failure> {
    let root = root_of(to, None, app.sort);
    let fail = |source| Failure::Folder { path: root.clone(), source };
    let there = match fs::read_dir(&root) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    for other in there {
        let other = other.map_err(fail)?.file_name();
        if other != *app.name && other.eq_ignore_ascii_case(&app.name) {
            let other = other.to_string_lossy();
            return Ok(Some(format!("its name differs from the existing {other} only in case")));
        }
    }
    Ok(None)
}

/// Returns the reason to refuse a program with a link that leads out of it. After deployment, that link would point to
/// another place than in the package.
fn leads_out(app: &App) -> Result<Option<String>, Failure> {
    let folder = of_its_name(app);
    if folder.is_symlink() {
        return Ok(Some("its folder is a symbolic link".to_owned()));
    }
    let outward = links::first_outward(folder);
    let outward = outward.map_err(|source| Failure::Folder { path: folder.to_owned(), source })?;
    Ok(outward.map(|link| {
        let link = link.strip_prefix(folder).unwrap_or(&link).display().to_string();
        format!("the link {link} leads out of the program")
    }))
}

/// A folder of our own beside the programs, on the same file system.
struct Beside(ScratchFolder);

impl Beside {
    fn new(folder: &Path) -> Result<Self, Failure> {
        let fail = |source| Failure::Output { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(fail)?;
        let folder = fs::canonicalize(folder).map_err(fail)?;
        Ok(Self(tempfile::Builder::new().prefix(BESIDE).tempdir_in(folder).map_err(fail)?.into()))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Words without the place that only we know.
    fn without(&self, words: &str) -> String {
        words.replace(&format!("{}/package/", self.path().display()), "")
    }

    /// Puts a program where hosts look for it; answers whether there was none.
    fn bring(&self, app: &App, to: &Path) -> Result<bool, Failure> {
        let root = root_of(to, None, app.sort);
        let (target, from) = (root.join(&app.name), of_its_name(app));
        let fail = |source| Failure::Output { path: target.clone(), source };
        fs::create_dir_all(&root).map_err(fail)?;
        on_disk(from).map_err(fail)?;
        put(from, &target, &self.path().join(format!("{}-{}", app.sort, app.name))).map_err(fail)
    }

    /// Removes it with all that was put aside.
    fn end(self) -> Result<(), Failure> {
        remove_folder(self.path()).map_err(|source| Failure::Output { path: self.path().to_owned(), source })
    }
}

/// The folder that has the name of a program: its files may lie one below.
pub(super) fn of_its_name(app: &App) -> &Path {
    let is_it = |path: &&Path| {
        path.file_name().is_some_and(|name| name == &*app.name)
            && path.parent().and_then(Path::file_name).is_some_and(|sort| sort == app.sort.word())
    };
    app.folder.ancestors().take(2).find(is_it).unwrap_or(&app.folder)
}

/// Puts a folder in the place of another in one step where the system can; what was there is aside afterwards.
fn put(from: &Path, target: &Path, aside: &Path) -> io::Result<bool> {
    if target.symlink_metadata().is_err() {
        fs::rename(from, target)?;
        return Ok(true);
    }
    if renameat_with(CWD, from, CWD, target, RenameFlags::EXCHANGE).is_err() {
        fs::rename(target, aside)?;
        instead(from, target, aside)?;
    }
    Ok(false)
}

/// Puts a folder where one was that is aside now; that one comes back if it cannot be.
fn instead(from: &Path, target: &Path, aside: &Path) -> io::Result<()> {
    fs::rename(from, target).inspect_err(|_| {
        // What is said is why the new one is not there.
        let _ = fs::rename(aside, target);
    })
}

/// What was written is there after a loss of power, too.
fn on_disk(folder: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(fs::File::open(folder)?)?;
    #[cfg(not(target_os = "linux"))]
    fs::File::open(folder)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_comes_back_if_what_is_new_cannot_be_put_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let [aside, target] = ["aside", "target"].map(|name| folder.path().join(name));
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("run.sh"), "first").unwrap();
        instead(&folder.path().join("nowhere"), &target, &aside).unwrap_err();
        assert_eq!(fs::read_to_string(target.join("run.sh")).unwrap(), "first");
        assert!(!aside.exists());
    }
}
