//! The flags of `tenure serve`, made of the list of settings.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::known::{Flag, KNOWN, Kind, Setting};
use super::layers::{Layer, Spoken};

/// What was said by flags.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags(Vec<(&'static Setting, Vec<String>)>);

impl Flags {
    /// The same as a layer, which counts before all others.
    pub(crate) fn layer(&self) -> Layer {
        let mut layer = Layer::default();
        for (setting, values) in &self.0 {
            let name = setting.flag.as_ref().map_or(setting.name, |flag| flag.name);
            let spoken = Spoken { values: values.clone(), at: format!("--{name}") };
            layer.said.insert(setting.name, spoken);
        }
        layer
    }
}

fn flagged() -> impl Iterator<Item = (&'static Setting, &'static Flag)> {
    KNOWN.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?)))
}

fn arg(setting: &'static Setting, flag: &'static Flag) -> Arg {
    let help = match setting.default {
        Some(default) if flag.turns.is_none() => format!("{} [default: {default}]", setting.about),
        _ => flag.help.unwrap_or(setting.about).to_owned(),
    };
    let arg = Arg::new(setting.name).long(flag.name).help(help);
    if flag.turns.is_some() {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = arg
        .value_name(flag.value_name)
        .value_parser(move |text: &str| setting.check(text).map(|()| text.to_owned()));
    let arg = match setting.kind {
        Kind::Choice(allowed) => arg.value_parser(clap::builder::PossibleValuesParser::new(allowed)),
        Kind::Text
        | Kind::Url
        | Kind::Urls
        | Kind::Address
        | Kind::Span
        | Kind::Bool
        | Kind::Texts
        | Kind::File
        | Kind::Networks
        | Kind::Egress
        | Kind::Grants
        | Kind::Level => arg,
    };
    arg.action(if setting.is_list() { ArgAction::Append } else { ArgAction::Set })
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        flagged().fold(command, |command, (setting, flag)| command.arg(arg(setting, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut said = Self::default();
        said.update_from_arg_matches(matches)?;
        Ok(said)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (setting, flag) in flagged() {
            let values: Vec<String> = match flag.turns {
                Some(turns) if matches.get_flag(setting.name) => vec![turns.to_string()],
                Some(_) => continue,
                None => matches.get_many::<String>(setting.name).into_iter().flatten().cloned().collect(),
            };
            if !values.is_empty() {
                self.0.push((setting, values));
            }
        }
        Ok(())
    }
}
