//! `tenure app`: which programs there are, how they stand, what they say; running, stopping and starting them. A server is
//! asked, or the routes of the contract in this program for a store that it opens: what is told is the same.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure::json_value;

use super::SET;
use super::deploy::{Deploy, Remove, deploy, remove};
use super::shown;
use crate::client::{Answer, Ask, Connect, Followed, Purpose, Trouble, escaped};
use crate::exit::Failure;
use crate::ids;
use crate::job::log_lines;
use crate::near::nearest;
use crate::output::{Out, Output, safe};
use crate::secrets;
use crate::unreadable;
use crate::with::{With, done_for, text};

/// The store of a folder that runs, seen from that folder.
const HERE: &str = ".tenure/apps.db";
const SORTS: [&str; 2] = ["triggered", "continuous"];
/// Options of tenure that users often put after a program's arguments by mistake.
const OWN: [&str; 7] = ["--db", "--url", "--context", "--set", "--wait", "--output", "-o"];

/// Arguments of `tenure app`.
#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    #[command(flatten)]
    connect: Connect,
    /// Set of programs
    #[arg(long, value_name = "NAME", default_value = SET, global = true)]
    set: String,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    what: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    #[command(flatten)]
    InAStore(What),
    /// Deploy programs from a folder or zip
    Deploy(Deploy),
    /// Delete a program from the folder that hosts run
    #[command(aliases = ["delete", "remove"])]
    Rm(Remove),
}

#[derive(Debug, Subcommand)]
enum What {
    /// List programs and their states
    List,
    /// Run a triggered program now
    Run {
        /// Name of the program
        name: String,
        /// Arguments, passed without a shell
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
        /// Wait for the end, print the output, and exit with 1 on failure
        #[arg(long)]
        wait: bool,
    },
    /// Start a stopped program
    Start(Named),
    /// Stop a program on all hosts until it is started
    Stop {
        #[command(flatten)]
        named: Named,
        /// Reason, shown with the program
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// List the last runs of a triggered program
    Runs {
        /// Name of the program
        name: String,
        /// Number of runs
        #[arg(short = 'n', long = "number", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        number: u16,
    },
    /// Print the output of a program
    Logs {
        #[command(flatten)]
        named: Named,
        /// Run of a triggered program [default: the last]
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// Follow the output
        #[arg(short, long)]
        follow: bool,
    },
}

#[derive(Debug, Args)]
struct Named {
    /// Name; triggered/NAME or continuous/NAME if both exist
    name: String,
}

pub(crate) fn run(args: AppArgs) -> Result<(), Failure> {
    let AppArgs { connect, set, output, what } = args;
    let what = match what {
        Act::InAStore(what) => what,
        Act::Deploy(said) => return told(output, |out| deploy(&said, out)),
        Act::Rm(said) => return told(output, |out| remove(&said, out)),
    };
    // To run a program is to change the store: whoever says so by the name of the command need not say it twice.
    done_for(Purpose::Change, &meant(connect)?, output, move |with| asked(&Set(set), what, with))
}

/// What is done on this machine, and told.
fn told(output: Output, act: impl FnOnce(&mut Out) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = output.open();
    act(&mut out)?;
    out.flush()
}

/// Who is asked if no flag says it.
fn meant(connect: Connect) -> Result<Connect, Failure> {
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let names_one = connect.db.is_some() || !connect.url.is_empty() || connect.context.is_some();
    if names_one || connect.token.is_some() || connect.token_file.is_some() {
        return Ok(connect);
    }
    let names_server = said("TENURE_URL").is_some() || said("TENURE_CONTEXT").is_some();
    let here = || (!names_server && Path::new(HERE).exists()).then(|| HERE.to_owned());
    let named = said("TENURE_DATABASE_URL").map(|url| secrets::database("TENURE_DATABASE_URL", &url));
    Ok(Connect { db: named.transpose()?.or_else(here), ..connect })
}

/// The set that is asked about.
struct Set(String);

impl Set {
    /// Where something about an app is asked.
    fn at(&self, path: &str) -> String {
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("/v1/apps{path}{sign}set={}", escaped(&self.0))
    }

    /// The last runs of a triggered one, the latest first.
    fn runs(&self, with: &With, name: &str, number: usize) -> Result<Vec<Value>, Failure> {
        let kind = escaped(&format!("{}.{name}", self.0));
        let (mut found, mut odd) = (Vec::new(), Vec::new());
        let mut cursor = String::new();
        while found.len() < number {
            let limit = (number - found.len()).min(shown::PAGE);
            let page =
                with.client.ask(&Ask::get(format!("/v1/jobs?kind={kind}&limit={limit}{cursor}")))?.json()?;
            found.extend(items(&page));
            odd.extend(page["unreadable"].as_array().into_iter().flatten().cloned());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={}", escaped(next));
        }
        unreadable::tell(&odd, &with.out);
        Ok(found)
    }

    /// Why somebody has stopped a triggered one, if somebody has.
    fn stopped(&self, with: &With, name: &str) -> Result<Option<String>, Failure> {
        match with.client.ask(&Ask::get(self.at(&format!("/triggered/{}", escaped(name))))) {
            Ok(answer) => Ok(answer.json()?["stopped"].as_str().map(str::to_owned)),
            Err(Trouble::Refused(refused)) if refused.is("not-found") => Ok(None),
            Err(trouble) => Err(trouble.into()),
        }
    }
}

fn items(page: &Value) -> Vec<Value> {
    page["items"].as_array().cloned().unwrap_or_default()
}

fn asked(set: &Set, what: What, with: &mut With) -> Result<(), Failure> {
    match what {
        What::List => {
            let all = with.client.ask(&Ask::get(set.at("")))?;
            shown::apps(&all, &mut with.out)
        }
        What::Run { name, arguments, wait } => {
            let is_ours = |word: &&String| OWN.contains(&word.split('=').next().unwrap_or_default());
            if let Some(word) = arguments.iter().find(is_ours) {
                with.out.tell(&format!(
                    "{} is passed to the program; to use it as an option of tenure, put it before {name}",
                    safe::line(word)
                ));
            }
            let id = begin(set, triggered(&name), &arguments, with)?;
            if wait { wait_for(&id, with) } else { with.out.line(&id) }
        }
        What::Start(named) => {
            let (sort, name) = named.sort(set, with)?;
            let path = format!("/{sort}/{}", escaped(&name));
            let was_stopped = !with.client.ask(&Ask::get(set.at(&path)))?.json()?["stopped"].is_null();
            with.client.ask(&Ask::post(set.at(&format!("{path}/start")), &json!({})))?;
            let words = if was_stopped { "is started" } else { "was not stopped" };
            with.out.tell(&format!("{sort} {name} {words}"));
            Ok(())
        }
        What::Stop { named, reason } => {
            let (sort, name) = named.sort(set, with)?;
            let path = format!("/{sort}/{}/stop", escaped(&name));
            with.client.ask(&Ask::post(set.at(&path), &json!({ "reason": reason })))?;
            with.out.tell(&format!("{sort} {name} is stopped"));
            Ok(())
        }
        What::Runs { name, number } => {
            let name = triggered(&name);
            let runs = set.runs(with, name, number.into())?;
            if runs.is_empty() {
                known(set, Some(SORTS[0]), name, with)?;
            }
            let stopped = set.stopped(with, name)?;
            shown::runs(&runs, stopped.as_deref(), &mut with.out)
        }
        What::Logs { named, run, follow } => match named.sort(set, with)? {
            ("triggered", name) => {
                let id = match run {
                    Some(id) => ids::job(&with.client, &id)?,
                    None => last_run(set, &name, with)?,
                };
                log_lines(with, &id, follow).map(drop)
            }
            (_, name) => shown::said(
                with,
                &format!("/continuous/{}/lines", escaped(&name)),
                |path| set.at(path),
                follow,
            ),
        },
    }
}

/// The name, however it is said: the list of ids says it with its sort.
fn triggered(name: &str) -> &str {
    name.strip_prefix("triggered/").unwrap_or(name)
}

fn last_run(set: &Set, name: &str, with: &With) -> Result<String, Failure> {
    let last = set.runs(with, name, 1)?;
    let missing = || Failure::NotThere(format!("program triggered/{} has not run yet", safe::line(name)));
    last.first().map(|run| text(run, "/id").to_owned()).ok_or_else(missing)
}

impl Named {
    /// Which app is meant.
    fn sort(&self, set: &Set, with: &With) -> Result<(&'static str, String), Failure> {
        let said =
            SORTS.into_iter().find_map(|sort| Some((sort, self.name.strip_prefix(sort)?.strip_prefix('/')?)));
        let (sort, name) = said.map_or((None, self.name.as_str()), |(sort, name)| (Some(sort), name));
        match known(set, sort, name, with)?.as_slice() {
            [sort] => Ok((sort, name.to_owned())),
            _ => Err(Failure::Usage(format!("say triggered/{0} or continuous/{0}", safe::line(name)))),
        }
    }
}

/// The sorts in which there is such an app, of the one that was said or of both: hosts offer it, somebody has stopped it, or
/// what it has done is there. There is at least one.
fn known(
    set: &Set,
    sort: Option<&'static str>,
    name: &str,
    with: &With,
) -> Result<Vec<&'static str>, Failure> {
    let all = items(&with.client.ask(&Ask::get(set.at("")))?.json()?);
    let meant: Vec<&'static str> =
        SORTS.into_iter().filter(|of| sort.is_none_or(|sort| sort == *of)).collect();
    let has = |sort: &str| all.iter().any(|app| app["type"] == sort && app["name"] == name);
    let mut found: Vec<&'static str> = meant.iter().copied().filter(|sort| has(sort)).collect();
    if found.is_empty() {
        // Nobody offers it any more, but what it has done is there.
        let has_run = meant.contains(&SORTS[0]) && !set.runs(with, name, 1)?.is_empty();
        found.extend(has_run.then_some(SORTS[0]));
        let has_said = meant.contains(&SORTS[1]) && has_said(set, name, with)?;
        found.extend(has_said.then_some(SORTS[1]));
    }
    if found.is_empty() {
        return Err(missing(set, sort, name, &all));
    }
    Ok(found)
}

/// Whether a continuous one of this name has said anything.
fn has_said(set: &Set, name: &str, with: &With) -> Result<bool, Failure> {
    match with.client.ask(&Ask::get(set.at(&format!("/continuous/{}/lines?limit=1", escaped(name))))) {
        Ok(answer) => Ok(!items(&answer.json()?).is_empty()),
        Err(Trouble::Refused(refused)) if refused.is("not-found") => Ok(false),
        Err(trouble) => Err(trouble.into()),
    }
}

/// Says that there is none, and which one may have been meant.
fn missing(set: &Set, sort: Option<&str>, name: &str, all: &[Value]) -> Failure {
    let of = sort.map_or_else(String::new, |sort| format!("{sort}/"));
    // Who says the wrong sort means the right name.
    let other =
        all.iter().find(|app| app["name"] == name).map(|app| format!("{}/{name}", text(app, "/type")));
    let names = all.iter().filter(|app| sort.is_none_or(|sort| app["type"] == sort));
    let near = other.or_else(|| nearest(name, names.map(|app| text(app, "/name"))).map(str::to_owned));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {}?", safe::line(&near)));
    let (name, set) = (safe::line(name), safe::line(&set.0));
    Failure::NotThere(format!("program {of}{name} not found in set {set}{near}"))
}

/// The id of the job of a run that was just asked for.
fn begin(set: &Set, name: &str, arguments: &[String], with: &With) -> Result<String, Failure> {
    let path = set.at(&format!("/triggered/{}/run", escaped(name)));
    let ask = json!({ "arguments": arguments, "by": "tenure app run" });
    let answered = with.client.ask(&Ask::post(path, &ask));
    match answered {
        Ok(answer) => id_of(&answer),
        Err(Trouble::Refused(refused)) => match refused.job.clone() {
            // As Kudu says it, and what it does not say: which one.
            Some(job) => {
                let said = Trouble::Refused(refused).sentence();
                Err(Failure::Conflict(format!("{}. It is run {job}", said.trim_end_matches('.'))))
            }
            None if refused.is("not-found") => {
                let all = items(&with.client.ask(&Ask::get(set.at("")))?.json()?);
                Err(missing(set, Some(SORTS[0]), name, &all))
            }
            None => Err(Trouble::Refused(refused).into()),
        },
        Err(trouble) => Err(trouble.into()),
    }
}

fn id_of(answer: &Answer) -> Result<String, Failure> {
    let job = answer.json()?;
    let strange = || Trouble::strange("a run without an id");
    Ok(job["id"].as_str().map(str::to_owned).ok_or_else(strange)?)
}

/// Shows what a run says, and ends as it has ended.
fn wait_for(id: &str, with: &mut With) -> Result<(), Failure> {
    match log_lines(with, id, true)? {
        Some(Followed::Ended(job)) => {
            let job = json_value(&job).unwrap_or_default();
            if job["state"] == "succeeded" {
                return Ok(());
            }
            let why = text(&job, "/error/detail");
            let why = if why.is_empty() { String::new() } else { format!(": {}", safe::line(why)) };
            Err(Failure::Unsuccessful(format!("run {id} failed{why}")))
        }
        Some(Followed::Removed) => Err(Failure::NotThere(format!("run {id} was deleted"))),
        Some(Followed::Over) | None => Ok(()),
    }
}
