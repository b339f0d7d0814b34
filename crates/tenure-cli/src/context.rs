//! `tenure context`: the servers that a person has named.

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::client::{Secret, base};
use crate::exit::Failure;
use crate::output::{Out, Output, Shape, Table, safe};
use crate::settings::{Context, Env, File};

/// What can be done with contexts.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Contexts {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Lists them; the one that counts has a star
    List,
    /// Chooses the one that counts from now on
    Use {
        /// Which
        name: String,
    },
    /// Adds one, or puts it in the place of one of that name
    Add(Add),
    /// Removes one
    Rm {
        /// Which
        name: String,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// Its name
    name: String,
    /// The server
    #[arg(long, value_name = "URL")]
    url: String,
    /// A file in which the token is, read each time
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Keeps the token that standard input says in the file of the settings, which nobody else may read
    #[arg(long, conflicts_with = "token_file")]
    token_stdin: bool,
    /// Refuses commands that change something
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn run(contexts: Contexts) -> Result<(), Failure> {
    let env = Env::real();
    // Whoever looks need not wait for whoever changes it: it is replaced whole.
    let is_change = !matches!(contexts.what, What::List);
    let _alone = if is_change { Some(File::alone(&env)?) } else { None };
    let mut file = File::load(&env)?;
    let mut out = contexts.output.open();
    let done = match contexts.what {
        What::List => return list(&file, &mut out),
        What::Use { name } => {
            file.context(&name)?;
            let said = format!("context {name} counts from now on");
            file.current = Some(name);
            said
        }
        What::Add(add) => {
            let name = fit(&add.name)?;
            let context = add.context()?;
            // The first one counts at once.
            file.current.get_or_insert_with(|| name.clone());
            let said = format!("context {name} stands for {}", safe::without_passwords(&context.url));
            file.contexts.insert(name, context);
            said
        }
        What::Rm { name } => {
            file.context(&name)?;
            file.contexts.remove(&name);
            file.current = file.current.filter(|current| *current != name);
            format!("context {name} is removed")
        }
    };
    let path = file.save(&env)?;
    out.tell(&format!("{done} ({})", path.display()));
    Ok(())
}

fn fit(name: &str) -> Result<String, Failure> {
    let is_fit = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_fit) {
        return Ok(name.to_owned());
    }
    Err(Failure::Invalid(format!("name: {name:?}; allowed: up to 64 letters, digits, -, _ and .")))
}

impl Add {
    fn context(&self) -> Result<Context, Failure> {
        let refuse = |path: &str| {
            let path = PathBuf::from(path);
            move |source| Failure::Input { path, source }
        };
        let token = match self.token_stdin {
            true => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map_err(refuse("standard input"))?;
                let Secret(token) = text
                    .parse()
                    .map_err(|wrong| Failure::Invalid(format!("the token on standard input: {wrong}")))?;
                Some(token)
            }
            false => None,
        };
        let absolute = |file: &PathBuf| std::path::absolute(file).map_err(refuse(&file.to_string_lossy()));
        let token_file = self.token_file.as_ref().map(absolute).transpose()?;
        Ok(Context { url: base(&self.url)?, token, token_file, read_only: self.read_only })
    }
}

fn list(file: &File, out: &mut Out) -> Result<(), Failure> {
    let documents = file.contexts.iter().map(|(name, context)| {
        json!({
            "name": name, "url": safe::without_passwords(&context.url), "current": file.current.as_ref() == Some(name),
            "read_only": context.read_only, "has_token": context.token.is_some() || context.token_file.is_some(),
        })
    });
    let documents: Vec<serde_json::Value> = documents.collect();
    match out.shape() {
        Shape::Json => out.document(&json!({ "items": documents }).to_string())?,
        Shape::Jsonl => documents.iter().try_for_each(|one| out.document(&one.to_string()))?,
        Shape::Id => file.contexts.keys().try_for_each(|name| out.id("context", name))?,
        Shape::Table | Shape::Wide => {
            let mut table = Table::new(&["current", "name", "url", "access", "token"]);
            for one in &documents {
                let said = |is: &str, yes: &str, no: &str| if one[is] == true { yes } else { no }.into();
                table.row(vec![
                    said("current", "*", ""),
                    one["name"].as_str().unwrap_or_default().into(),
                    one["url"].as_str().unwrap_or_default().into(),
                    said("read_only", "read-only", "full"),
                    said("has_token", "yes", "no"),
                ]);
            }
            out.table(&table, true)?;
        }
    }
    out.flush()
}
