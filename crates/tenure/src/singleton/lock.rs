//! The name of a singleton's lease: unambiguous by construction, with the printed form of old beside it.

use std::fmt::Write;

use tenure_core::{AppId, Invalid, LeaseName, limits};

use crate::holding::SINGLETON;

/// When a singleton's lease is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Around each run of a function.
    Function,
    /// As long as something listens.
    Listener,
}

/// What a singleton is the only one of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A function, or one of its parts.
    Function {
        /// The name of the function, such as the kind of its jobs.
        function: String,
        /// The part; the whole function if it is empty.
        part: String,
    },
    /// Whatever in the app is given the same name.
    Host {
        /// The name.
        name: String,
    },
}

/// Which lease a singleton holds.
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
    /// Names the lease.
    ///
    /// # Errors
    /// Refuses a function or a host scope without a name, a listener of a host scope, and what is too
    /// long for the name of a lease.
    pub fn new(app: AppId, scope: Scope, mode: Mode) -> Result<Self, Invalid> {
        let name = stored(&app, &scope, mode)?;
        if name.len() > limits::LEASE_NAME_BYTES {
            let found = format_args!("a name and a scope that come to a lease name of {} bytes", name.len());
            let allowed = format!("{} bytes, the app id included", limits::LEASE_NAME_BYTES);
            return Err(Invalid::new("singleton", found, allowed));
        }
        Ok(Self { name: LeaseName::in_field("singleton", &name)?, alias: printed(&app, &scope, mode) })
    }

    /// The name of the lease. Different locks have different ones.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.name
    }

    /// The form in which the lock was printed of old. It stands with the lease for people; different locks
    /// may have the same.
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
            Err(Invalid::new("singleton", "a listener of a host scope", "a listener of a function"))
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
