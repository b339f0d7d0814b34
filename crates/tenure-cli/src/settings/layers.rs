//! What was said about settings, and where: the environment, files, and which of it counts.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::known::{CONTEXTS, KEPT_APART, KNOWN, Kind, NAMED, Setting, known};
use super::trust;
use crate::exit::Failure;
use crate::near::nearest;
use crate::output::safe;
use crate::secrets;

/// The file in the folder in which a program is started.
pub(crate) const HERE: &str = "tenure.toml";
/// Answer to a file in the working folder that names a command. Its author may be another user.
const NO_COMMANDS: &str = "cmd: is not allowed in this file; use your own settings file, one passed with --config, or the environment";

/// A value, and where it was said.
#[derive(Clone, PartialEq)]
pub(crate) struct Spoken {
    /// One, or those of a list.
    pub(crate) values: Vec<String>,
    pub(crate) at: String,
}

// A value may be a secret.
impl fmt::Debug for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spoken({})", self.at)
    }
}

/// What is declared of a queue or a schedule, as the server takes it, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Declaration {
    pub(crate) body: Value,
    pub(crate) at: String,
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) at: String,
    pub(crate) what: String,
}

impl Fault {
    /// In which file it stands, and in which line of it.
    pub(crate) fn place(&self) -> (&str, usize) {
        let (file, line) = self.at.rsplit_once(':').unwrap_or((&self.at, ""));
        line.parse().map_or((self.at.as_str(), 0), |line| (file, line))
    }

    fn line(&self) -> usize {
        self.place().1
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&safe::line(&format!("{}: {}", self.at, self.what)))
    }
}

/// Whose a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// It was named, by a flag or by the environment.
    Named,
    /// In the folder where the program was started.
    Here,
    /// In that folder, and another user owns it or can write to it.
    Foreign,
    /// The person's.
    User,
    /// The machine's.
    System,
}

impl Whose {
    /// Returns true for a file that is read only because the program was started in its folder.
    fn is_here(self) -> bool {
        match self {
            Self::Here | Self::Foreign => true,
            Self::Named | Self::User | Self::System => false,
        }
    }
}

/// What was said at one place.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    pub(crate) said: BTreeMap<&'static str, Spoken>,
    /// By section and name: `("queues", "mail")`.
    pub(crate) declared: BTreeMap<(&'static str, String), Declaration>,
    pub(crate) faults: Vec<Fault>,
}

impl Layer {
    fn fault(&mut self, at: &str, what: impl Into<String>) {
        self.faults.push(Fault { at: at.to_owned(), what: what.into() });
    }

    /// Notes a value that is one, and a fault otherwise. What is wrong with a secret is told without it.
    fn say(&mut self, setting: &'static Setting, values: Vec<String>, at: &str) {
        for value in &values {
            if let Err(wrong) = setting.check(value) {
                let shown = if setting.is_secret { String::new() } else { format!(" {value:?}") };
                return self.fault(at, format!("{}: invalid value{shown}; {wrong}", setting.name));
            }
        }
        if self.said.contains_key(setting.name) {
            return self.fault(at, format!("{} is set twice", setting.name));
        }
        self.said.insert(setting.name, Spoken { values, at: at.to_owned() });
    }

    /// Notes a secret that is in a separate file.
    fn say_file(&mut self, setting: &'static Setting, file: &Path, (at, whose): (&str, Whose)) {
        match secrets::of_file(file) {
            Ok(text) if whose.is_here() && secrets::is_command(text.trim()) => {
                self.fault(at, format!("{}_file: {NO_COMMANDS}", setting.name));
            }
            Ok(text) => {
                let at = format!("{at} ({})", file.display());
                self.say(setting, vec![text.trim().to_owned()], &at);
            }
            Err(error) => self.fault(at, format!("{}_file: {}: {error}", setting.name, file.display())),
        }
    }

    /// What the environment says; an empty variable says nothing.
    pub(crate) fn of_variables(variables: &BTreeMap<String, String>) -> Self {
        let mut layer = Self::default();
        let mut told = Vec::new();
        for setting in KNOWN {
            for name in setting.variables() {
                // What stands in the variable itself counts before a file, and the shorter name first.
                if let Some(value) = variables.get(&name).filter(|_| !layer.said.contains_key(setting.name)) {
                    let split = |value: &str| value.split(',').map(|it| it.trim().to_owned()).collect();
                    let values = if setting.is_list() { split(value) } else { vec![value.clone()] };
                    layer.say(setting, values, &name);
                }
                let by_file = format!("{name}_FILE");
                let is_open = setting.is_secret && !layer.said.contains_key(setting.name);
                if let Some(file) = variables.get(&by_file).filter(|_| is_open) {
                    layer.say_file(setting, Path::new(file), (&by_file, Whose::Named));
                }
                told.extend([name, by_file]);
            }
        }
        for name in variables.keys().filter(|name| name.contains("__") && !told.contains(name)) {
            let near = nearest(name, told.iter().map(String::as_str).filter(|known| known.contains("__")));
            let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            layer.fault(name, format!("unknown setting{near}"));
        }
        layer
    }

    /// What a file says; nothing if it is not there, unless it was named.
    pub(crate) fn of_file(path: &Path, whose: Whose) -> Self {
        let mut layer = Self::default();
        let at = path.display().to_string();
        match trust::read(path, whose) {
            Ok((text, whose)) => {
                layer.read(&text, path, whose);
                layer.faults.sort_by_key(Fault::line);
            }
            Err(error)
                if whose != Whose::Named
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => layer.fault(&at, format!("cannot read: {error}")),
        }
        layer
    }

    fn read(&mut self, text: &str, path: &Path, whose: Whose) {
        let place = Place { text, path };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            self.fault(&place.of(error.span().map_or(0, |span| span.start)), error.message());
        }
        if !errors.is_empty() {
            return;
        }
        for (key, value) in table.get_ref() {
            let (name, at) = (key.get_ref().as_ref(), place.of(key.span().start));
            match (value.get_ref(), name) {
                (value, name) if CONTEXTS.contains(&name) => match whose {
                    Whose::User => {
                        if let (DeValue::String(current), "current") = (value, name) {
                            let spoken = Spoken {
                                values: vec![current.clone().into_owned()],
                                at: "tenure context use".to_owned(),
                            };
                            self.said.insert("client.context", spoken);
                        }
                    }
                    Whose::Named | Whose::Here | Whose::Foreign | Whose::System => {
                        self.fault(
                            &at,
                            "contexts belong in your own settings file; use `tenure context add`",
                        );
                    }
                },
                (DeValue::Table(table), name) if NAMED.iter().any(|(section, _)| *section == name) => {
                    self.declarations(name, table, &place, whose);
                }
                (DeValue::Table(table), name) if is_section(name) => self.section(name, table, &place, whose),
                (_, name) => {
                    let known = sections().chain(NAMED.iter().map(|(section, _)| *section));
                    let near = nearest(name, known).map_or_else(
                        || format!("; expected {}", all_sections()),
                        |near| format!("; did you mean [{near}]?"),
                    );
                    self.fault(&at, format!("unknown section [{name}]{near}"));
                }
            }
        }
    }

    fn section(&mut self, section: &str, table: &DeTable<'_>, place: &Place<'_>, whose: Whose) {
        for (key, value) in table {
            let (key, at) = (key.get_ref().as_ref(), place.of(key.span().start));
            if section == "client" && whose.is_here() {
                // Else whoever has written a folder would be sent the token of whoever enters it.
                self.fault(
                    &at,
                    "[client] is not allowed in this file; set the server in your own settings file or one passed with --config",
                );
                continue;
            }
            let name = format!("{section}.{key}");
            let of_file = name.strip_suffix("_file").and_then(known).filter(|setting| setting.is_secret);
            match (known(&name), of_file) {
                (Some(setting), _) => match texts(setting, value.get_ref()) {
                    Ok(values) => {
                        let is_path = matches!(setting.kind, Kind::File);
                        let seen = |value: String| if is_path { place.beside(&value) } else { value };
                        let values: Vec<String> = values.into_iter().map(seen).collect();
                        let runs = setting.is_secret && values.iter().any(|value| secrets::is_command(value));
                        if runs && whose.is_here() {
                            self.fault(&at, format!("{name}: {NO_COMMANDS}"));
                            continue;
                        }
                        if let Some(why) = trust::refusal(whose, setting.name, &values) {
                            self.fault(&at, format!("{name} {why}"));
                            continue;
                        }
                        self.say(setting, values, &at);
                    }
                    Err(wrong) => self.fault(&at, format!("{name}: {wrong}")),
                },
                (None, Some(setting)) => {
                    if let Some(why) = trust::refusal(whose, setting.name, &[]) {
                        self.fault(&at, format!("{name} {why}"));
                    } else if let DeValue::String(file) = value.get_ref() {
                        self.say_file(setting, Path::new(&place.beside(file)), (&at, whose));
                    } else {
                        self.fault(&at, format!("{name}: expected the path of a file in quotes"));
                    }
                }
                (None, None) => {
                    let of_section = KNOWN.iter().filter(|setting| setting.parts().0 == section);
                    let near = nearest(key, of_section.map(|setting| setting.parts().1));
                    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                    self.fault(&at, format!("unknown setting {name}{near}"));
                }
            }
        }
    }

    fn declarations(&mut self, section: &str, table: &DeTable<'_>, place: &Place<'_>, whose: Whose) {
        let Some((section, keys)) = NAMED.iter().find(|(known, _)| *known == section) else { return };
        for (name, value) in table {
            let (name, at) = (name.get_ref().as_ref(), place.of(name.span().start));
            if let Some(why) = trust::refusal(whose, section, &[]) {
                self.fault(&at, format!("{section}.{name} {why}"));
                continue;
            }
            let DeValue::Table(fields) = value.get_ref() else {
                self.fault(&at, format!("{section}.{name}: expected a table, such as [{section}.{name}]"));
                continue;
            };
            let apart = |key: &str| key.strip_suffix("_file").is_some_and(|key| is_kept_apart(section, key));
            let is_known = |key: &str| keys.contains(&key) || apart(key);
            for key in fields.keys().filter(|key| !is_known(key.get_ref().as_ref())) {
                let near = nearest(key.get_ref(), keys.iter().copied());
                let near = near.map_or_else(
                    || format!("; expected {}", keys.join(", ")),
                    |near| format!("; did you mean {near}?"),
                );
                let at = place.of(key.span().start);
                self.fault(&at, format!("unknown setting {section}.{name}.{}{near}", key.get_ref()));
            }
            match document(value) {
                Ok(mut body) => {
                    // What is not known was told here, and the rest is for the server to judge.
                    if let Some(fields) = body.as_object_mut() {
                        fields.retain(|key, _| is_known(key));
                        self.read_apart((section, name), fields, place, (&at, whose));
                    }
                    self.declared.insert((*section, name.to_owned()), Declaration { body, at });
                }
                Err(wrong) => self.fault(&at, format!("{section}.{name}: {wrong}")),
            }
        }
    }

    /// Puts secrets in the place of the files and references that lead to them.
    fn read_apart(
        &mut self,
        (section, name): (&str, &str),
        fields: &mut Map<String, Value>,
        place: &Place<'_>,
        (at, whose): (&str, Whose),
    ) {
        for (_, key) in KEPT_APART.iter().filter(|(of, _)| *of == section) {
            let what = format!("{section}.{name}.{key}");
            if let Some(Value::String(secret)) = fields.get_mut(*key) {
                if secrets::is_command(secret) && whose.is_here() {
                    self.fault(at, format!("{what}: {NO_COMMANDS}"));
                    continue;
                }
                match secrets::resolve(&what, secret) {
                    Ok(found) => *secret = found,
                    Err(wrong) => self.fault(at, wrong.to_string()),
                }
            }
            let Some(file) = fields.remove(&format!("{key}_file")) else { continue };
            let what = format!("{section}.{name}.{key}_file");
            let Some(file) = file.as_str() else {
                self.fault(at, format!("{what}: expected the path of a file in quotes"));
                continue;
            };
            let file = PathBuf::from(place.beside(file));
            match secrets::of_file(&file) {
                Ok(_) if fields.contains_key(*key) => {
                    self.fault(at, format!("{section}.{name}.{key} is set twice"));
                }
                Ok(text) => _ = fields.insert((*key).to_owned(), Value::from(text.trim())),
                Err(error) => self.fault(at, format!("{what}: {}: {error}", file.display())),
            }
        }
    }
}

fn sections() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|setting| setting.parts().0)
}

/// Whether this of a declaration is a secret.
pub(crate) fn is_kept_apart(section: &str, key: &str) -> bool {
    KEPT_APART.contains(&(section, key))
}

fn is_section(name: &str) -> bool {
    sections().any(|section| section == name)
}

fn all_sections() -> String {
    let mut all: Vec<String> =
        sections().chain(NAMED.iter().map(|(section, _)| *section)).map(|it| format!("[{it}]")).collect();
    all.dedup();
    all.join(", ")
}

/// A file, for telling where in it something stands.
struct Place<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Place<'_> {
    /// Returns the path of a file that the settings file names, as seen from there.
    fn beside(&self, file: &str) -> String {
        self.path.parent().unwrap_or(Path::new("")).join(file).display().to_string()
    }

    fn of(&self, byte: usize) -> String {
        let before = self.text.get(..byte).unwrap_or(self.text);
        format!("{}:{}", self.path.display(), before.matches('\n').count() + 1)
    }
}

/// The values of a setting, as texts.
fn texts(setting: &Setting, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let one = |value: &DeValue<'_>| match (value, setting.kind) {
        (DeValue::String(text), Kind::Bool) => Err(format!("invalid value {text:?}; expected true or false")),
        (DeValue::String(text), _) => Ok(text.clone().into_owned()),
        (DeValue::Boolean(is), Kind::Bool) => Ok(is.to_string()),
        (_, Kind::Bool) => Err("expected true or false".to_owned()),
        (_, Kind::Span) => Err("expected a time with a unit, such as \"5s\"".to_owned()),
        (_, _) => Err("expected a text in quotes".to_owned()),
    };
    if !setting.is_list() {
        return Ok(vec![one(value)?]);
    }
    let DeValue::Array(values) = value else {
        return Err("expected a list of texts, such as [\"a\", \"b\"]".to_owned());
    };
    values.iter().map(|value| one(value.get_ref())).collect()
}

/// What stands in a file, as JSON.
fn document(value: &Spanned<DeValue<'_>>) -> Result<Value, String> {
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix());
            Value::from(whole.map_err(|_| format!("{} is too large", number.as_str()))?)
        }
        DeValue::Float(number) => {
            let number: f64 = number.as_str().parse().map_err(|_| "invalid number".to_owned())?;
            serde_json::Number::from_f64(number).map(Value::Number).ok_or("inf and nan are not allowed")?
        }
        DeValue::Boolean(is) => Value::from(*is),
        DeValue::Datetime(instant) => Value::from(instant.to_string()),
        DeValue::Array(values) => Value::Array(values.iter().map(document).collect::<Result<_, _>>()?),
        DeValue::Table(table) => {
            let fields =
                table.iter().map(|(key, value)| Ok((key.get_ref().clone().into_owned(), document(value)?)));
            Value::Object(fields.collect::<Result<Map<_, _>, String>>()?)
        }
    })
}

/// What counts, of all that was said.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) chosen: BTreeMap<&'static str, Spoken>,
    pub(crate) declared: BTreeMap<(&'static str, String), Declaration>,
    pub(crate) faults: Vec<Fault>,
}

impl Resolved {
    /// The first layer that says something of a setting counts. A queue or schedule is taken whole from one layer.
    pub(crate) fn of(layers: impl IntoIterator<Item = Layer>) -> Self {
        let mut resolved = Self::default();
        for layer in layers {
            for (name, spoken) in layer.said {
                resolved.chosen.entry(name).or_insert(spoken);
            }
            for (name, declaration) in layer.declared {
                resolved.declared.entry(name).or_insert(declaration);
            }
            resolved.faults.extend(layer.faults);
        }
        resolved
    }

    /// The same, or all that is wrong.
    pub(crate) fn sound(self) -> Result<Self, Failure> {
        if self.faults.is_empty() {
            return Ok(self);
        }
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        Err(Failure::Invalid(faults.join("\n")))
    }

    /// Says something of a setting of which nobody else has said anything.
    pub(crate) fn or_else(&mut self, name: &'static str, value: Option<String>, at: &str) {
        if let Some(value) = value {
            self.chosen.entry(name).or_insert(Spoken { values: vec![value], at: at.to_owned() });
        }
    }

    /// What a setting is; none if nobody says anything and there is no default.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let said = self.chosen.get(name).and_then(|spoken| spoken.values.first());
        said.map(String::as_str).or_else(|| known(name)?.default)
    }

    /// All values of a list.
    pub(crate) fn list(&self, name: &str) -> &[String] {
        self.chosen.get(name).map_or(&[], |spoken| &spoken.values)
    }

    /// Whether a setting is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// A value as the program uses it.
    pub(crate) fn parsed<T, E: fmt::Display>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Failure> {
        let wrong = |wrong: E| Failure::Invalid(format!("{name}: {wrong}"));
        self.text(name).map(|text| parse(text).map_err(wrong)).transpose()
    }
}

/// The files that are read for a program that serves, in the order in which they count.
pub(crate) fn files(env: &super::Env, named: Option<&Path>) -> Vec<(PathBuf, Whose)> {
    let named = named.map(Path::to_owned).or_else(|| env.said("TENURE_CONFIG").map(PathBuf::from));
    let first = match named {
        Some(named) => (named, Whose::Named),
        None => (env.here.join(HERE), Whose::Here),
    };
    let user = env.folder.as_ref().map(|folder| (folder.join("config.toml"), Whose::User));
    [Some(first), user, Some((env.system.clone(), Whose::System))].into_iter().flatten().collect()
}
