//! The name of a singleton's lease: unambiguous by construction, with the printed form of old beside it.

use std::fmt::Write;

use tenure_core::{AppId, Invalid, LeaseName, limits};

use crate::holding::SINGLETON;

/// The time for which a singleton holds its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// During each run of a function.
    Function,
    /// As long as a listener runs.
    Listener,
}

/// The scope of a singleton.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A function, or a part of it.
    Function {
        /// Name of the function, such as the kind of its jobs.
        function: String,
        /// The part; empty for the whole function.
        part: String,
    },
    /// Everything in the app that uses the same name.
    Host {
        /// The name.
        name: String,
    },
}

/// The lease of a singleton.
///
/// ```
/// use tenure::{AppId, Lock, Mode, Scope};
///
/// let scope = Scope::Function { function: "charge".into(), part: "customer/7".into() };
/// let lock = Lock::new(AppId::new("billing")?, scope, Mode::Function)?;
/// assert_eq!(lock.name().as_str(), "singleton/billing/function/charge/customer%2F7");
/// assert_eq!(lock.alias(), "billing/charge.customer/7");
/// # Ok::<(), tenure::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    name: LeaseName,
    alias: String,
}

impl Lock {
    /// Determines the lease of a singleton.
    ///
    /// # Errors
    /// Refuses a function or host scope without a name, a listener with a host scope, and a name that is too long for
    /// a lease.
    pub fn new(app: AppId, scope: Scope, mode: Mode) -> Result<Self, Invalid> {
        let name = stored(&app, &scope, mode)?;
        if name.len() > limits::LEASE_NAME_BYTES {
            let found = format_args!("a name and a scope that make a lease name of {} bytes", name.len());
            let allowed = format!("at most {} bytes, including the app id", limits::LEASE_NAME_BYTES);
            return Err(Invalid::new("singleton", found, allowed));
        }
        Ok(Self { name: LeaseName::in_field("singleton", &name)?, alias: printed(&app, &scope, mode) })
    }

    /// Returns the lease name. Different locks have different names.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.name
    }

    /// Returns the lock name in the format of WebJobs, which is stored with the lease for people. Different locks may
    /// have the same.
    #[must_use]
    pub fn alias(&self) -> &str {
        &self.alias
    }
}

/// Each part stands between slashes and holds none itself, so the parts can be told from the name.
fn stored(app: &AppId, scope: &Scope, mode: Mode) -> Result<String, Invalid> {
    let nameless = |what: &str| Invalid::new("singleton", format_args!("{what} without a name"), "a name");
    match (scope, mode) {
        (Scope::Function { function, .. }, _) if function.is_empty() => Err(nameless("a function")),
        (Scope::Host { name }, _) if name.is_empty() => Err(nameless("a host scope")),
        (Scope::Host { .. }, Mode::Listener) => {
            Err(Invalid::new("singleton", "a listener with a host scope", "a listener with a function scope"))
        }
        (Scope::Host { name }, Mode::Function) => Ok(format!("{SINGLETON}{app}/host/{}", escaped(name))),
        (Scope::Function { function, part }, mode) => {
            let kind = match mode {
                Mode::Function => "function",
                Mode::Listener => "listener",
            };
            let function = escaped(function);
            let part = if part.is_empty() { String::new() } else { format!("/{}", escaped(part)) };
            Ok(format!("{SINGLETON}{app}/{kind}/{function}{part}"))
        }
    }
}

fn printed(app: &AppId, scope: &Scope, mode: Mode) -> String {
    let name = match scope {
        Scope::Function { function, part } if part.is_empty() => function.clone(),
        Scope::Function { function, part } => format!("{function}.{part}"),
        Scope::Host { name } => name.clone(),
    };
    let end = match mode {
        Mode::Function => "",
        Mode::Listener => ".Listener",
    };
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    format!("{app}/{name}{end}").chars().map(plain).collect()
}

/// A part of a name: letters, digits and a few signs as they are, everything else as the bytes of its
/// UTF-8 in hexadecimal. It can be read back, so two texts are never written alike.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let only_dots = text.chars().all(|c| c == '.');
    for c in text.chars() {
        // A part that is `.` or `..` would be a step.
        let is_plain = c.is_alphanumeric() || "-_:@+=~,".contains(c) || (c == '.' && !only_dots);
        if is_plain {
            escaped.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a string does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
