//! `tenure context`: the servers that a person has named.

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::client::{Secret, bases};
use crate::exit::Failure;
use crate::output::{Out, Output, Shape, Table, safe};
use crate::settings::{Context, Env, File};

/// Commands for contexts.
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
    /// List contexts; a star marks the current one
    List,
    /// Choose the current context
    Use {
        /// Name of the context
        name: String,
    },
    /// Add a context, or replace the one of that name
    #[command(alias = "create")]
    Add(Add),
    /// Delete a context
    #[command(aliases = ["delete", "remove"])]
    Rm {
        /// Name of the context
        name: String,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// Name of the context
    name: String,
    /// URL of the server, or of several servers of one store, separated by commas
    #[arg(long, value_name = "URL")]
    url: String,
    /// File with the access token, read at every use
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Read the access token from standard input and store it in the private settings file
    #[arg(long, conflicts_with = "token_file")]
    token_stdin: bool,
    /// Reject commands that change anything
    #[arg(long)]
    read_only: bool,
    /// Send the access token to other machines over http://
    #[arg(long)]
    insecure_http: bool,
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
            let said = format!("context {name} is now current");
            file.current = Some(name);
            said
        }
        What::Add(add) => {
            let name = fit(&add.name)?;
            let context = add.context()?;
            // The first one counts at once.
            file.current.get_or_insert_with(|| name.clone());
            let said = format!("added context {name} for {}", safe::without_passwords(&context.url));
            file.contexts.insert(name, context);
            said
        }
        What::Rm { name } => {
            file.context(&name)?;
            file.contexts.remove(&name);
            file.current = file.current.filter(|current| *current != name);
            format!("deleted context {name}")
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
    Err(Failure::Invalid(format!(
        "invalid context name {name:?}; expected up to 64 letters, digits, -, _ and ."
    )))
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
                    .map_err(|wrong| Failure::Invalid(format!("invalid token on standard input: {wrong}")))?;
                Some(token)
            }
            false => None,
        };
        let absolute = |file: &PathBuf| std::path::absolute(file).map_err(refuse(&file.to_string_lossy()));
        let token_file = self.token_file.as_ref().map(absolute).transpose()?;
        Ok(Context {
            url: bases(&self.url)?.join(","),
            token,
            token_file,
            read_only: self.read_only,
            insecure_http: self.insecure_http,
        })
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
