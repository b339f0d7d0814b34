//! Behind a pooler that gives a server to somebody else after each transaction. Nothing that was said before a transaction
//! is known in it: each says anew how this store works, and statements have no names. What is sent together still costs
//! one round trip.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_postgres::types::{Oid, Type};
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::epoch::Origin;
use crate::query::Query;

/// What statements are called while their types are asked for.
const NAME: &str = "tenure_types_";
/// How plans are made here: see where a connection of one's own is told the same for good.
const PLANS: [&str; 5] =
    ["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit"];

/// What a connection knows that has no server for itself.
#[derive(Debug)]
pub(crate) struct Pooled {
    schema: String,
    /// For how long the server tries, and for how long it waits for a lock.
    answer: Duration,
    lock: Duration,
    /// The server that has to be the one that answers, once that is known.
    origin: Option<Origin>,
    /// The types of the values of each statement that was sent.
    types: BTreeMap<&'static str, Vec<Type>>,
}

/// Statements of one round trip, and which of their answers nobody asked for.
pub(crate) struct Round<'q> {
    pub statements: Vec<(&'q str, Option<&'q Query>)>,
    /// Whether a transaction was put around them.
    pub wrapped: bool,
    /// Whether one begins with them.
    pub begins: bool,
}

impl Pooled {
    pub(crate) fn new(schema: &str, patience: Duration) -> Self {
        Self {
            schema: schema.to_owned(),
            answer: patience,
            lock: patience,
            origin: None,
            types: BTreeMap::new(),
        }
    }

    pub(crate) fn hurry(&mut self, answer: Duration, lock: Duration) {
        (self.answer, self.lock) = (answer, lock);
    }

    /// From now on no other server may answer: it would have to begin a new epoch first.
    pub(crate) fn stay_with(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    /// What each transaction says first. If another server answers than it has to be, nothing of the transaction is done.
    ///
    /// The search path of the pooler still applies. So all arguments have the exact types of the operators in `pg_catalog`.
    pub(crate) fn settings(&self) -> String {
        let (answer, lock) = (self.answer.as_millis(), self.lock.as_millis());
        let set = |name: &str, value: &str| format!("pg_catalog.set_config('{name}', '{value}', true)");
        let mut parts = vec![
            set("search_path", &format!("\"{}\"", self.schema)),
            set("statement_timeout", &answer.to_string()),
            set("lock_timeout", &lock.to_string()),
            set("idle_in_transaction_session_timeout", &answer.to_string()),
            set("TimeZone", "UTC"),
            "pg_catalog.set_config('synchronous_commit', coalesce(nullif(pg_catalog.current_setting('synchronous_commit'), 'off'), 'on'), true)"
                .to_owned(),
        ];
        parts.extend(PLANS.map(|name| set(name, "off")));
        if let Some(Origin { system, timeline, started, .. }) = self.origin {
            parts.push(format!(
                "1 / CASE WHEN (SELECT system_identifier FROM pg_control_system()) = {system}::bigint
                 AND ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint = {timeline}::bigint
                 AND (extract(epoch FROM pg_postmaster_start_time()) * 1000000::numeric)::bigint = {started}::bigint
                 THEN 1 ELSE 0 END"
            ));
        }
        format!("SELECT {}", parts.join(", "))
    }

    /// The types of the values of a statement.
    pub(crate) fn types(&self, sql: &str) -> &[Type] {
        self.types.get(sql).map_or(&[], Vec::as_slice)
    }

    /// Asks for the types of the values of statements that were never sent. `inside`: whether a transaction is open.
    pub(crate) async fn learn(
        &mut self,
        client: &Client,
        queries: &[Query],
        inside: bool,
    ) -> Result<(), Error> {
        let is_new = |query: &&Query| !query.values.is_empty() && !self.types.contains_key(query.sql);
        let mut missing: Vec<&'static str> = queries.iter().filter(is_new).map(|query| query.sql).collect();
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        missing.dedup();
        let answered = client.simple_query(&self.question(&missing, inside)).await?;
        for message in answered {
            let SimpleQueryMessage::Row(row) = message else { continue };
            let Some((number, types)) = (if row.len() == 2 { row.get(0).zip(row.get(1)) } else { None })
            else {
                continue;
            };
            let number = number.strip_prefix(NAME).and_then(|number| number.parse::<usize>().ok());
            if let Some(sql) = number.and_then(|number| missing.get(number)) {
                self.types.insert(sql, read(types));
            }
        }
        Ok(())
    }

    fn question(&self, missing: &[&str], inside: bool) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        if !inside {
            let _ = write!(text, "BEGIN; {};", self.settings());
        }
        for (number, sql) in missing.iter().enumerate() {
            let _ = write!(text, "PREPARE {NAME}{number} AS {sql};");
        }
        let _ = write!(
            text,
            "SELECT name, parameter_types::oid[]::text FROM pg_prepared_statements WHERE starts_with(name, '{NAME}');"
        );
        for number in 0..missing.len() {
            let _ = write!(text, "DEALLOCATE {NAME}{number};");
        }
        if !inside {
            text.push_str("COMMIT");
        }
        text
    }
}

impl<'q> Round<'q> {
    /// What to send for these statements.
    pub(crate) fn of(queries: &'q [Query], settings: &'q str, in_transaction: bool) -> Self {
        let begins = begins(queries);
        let wrapped = !begins && !in_transaction;
        let mut statements: Vec<(&str, Option<&Query>)> = Vec::with_capacity(queries.len() + 3);
        if wrapped {
            statements.extend([("BEGIN", None), (settings, None)]);
        }
        statements.extend(queries.iter().map(|query| (query.sql, Some(query))));
        if begins {
            statements.insert(1, (settings, None));
        }
        if wrapped {
            statements.push(("COMMIT", None));
        }
        Self { statements, wrapped, begins }
    }

    /// Which of the answers is that of the settings.
    pub(crate) fn settings_at(&self) -> Option<usize> {
        (self.wrapped || self.begins).then_some(1)
    }
}

/// Whether a transaction begins with these.
pub(crate) fn begins(queries: &[Query]) -> bool {
    queries.first().is_some_and(|query| query.sql.starts_with("BEGIN"))
}

/// Types as an array of their numbers; one that is not known is left to the server.
fn read(text: &str) -> Vec<Type> {
    let numbers = text.trim_matches(['{', '}']).split(',').filter_map(|number| number.parse::<Oid>().ok());
    numbers.map(|number| Type::from_oid(number).unwrap_or(Type::UNKNOWN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_alone_is_a_transaction_and_what_begins_one_is_told_how_to_work() {
        let texts = |queries: &[Query], inside| {
            let round = Round::of(queries, "SETTINGS", inside);
            round.statements.iter().map(|(sql, _)| (*sql).to_owned()).collect::<Vec<_>>()
        };
        let (one, begin) = (Query::new("SELECT 1"), Query::new("BEGIN"));
        assert_eq!(texts(std::slice::from_ref(&one), false), ["BEGIN", "SETTINGS", "SELECT 1", "COMMIT"]);
        assert_eq!(texts(std::slice::from_ref(&one), true), ["SELECT 1"]);
        assert_eq!(texts(&[begin, one], true), ["BEGIN", "SETTINGS", "SELECT 1"]);
    }

    #[test]
    fn types_are_read_by_their_numbers() {
        assert_eq!(read("{25,20,2951}"), [Type::TEXT, Type::INT8, Type::UUID_ARRAY]);
        assert_eq!(read("{}"), []);
    }
}
