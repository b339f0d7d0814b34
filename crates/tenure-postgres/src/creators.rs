//! Detects other roles that could run code in the schema.
//!
//! Programs and the functions of the schema look up names there. PostgreSQL prefers the function or operator whose
//! parameters match the arguments best, and runs triggers as the role that writes. Foreign key checks run as the owner of
//! the referenced table, with casts that the owner of the key may have made. So a role that may create such objects could
//! run code as another role. The check looks up names only in `pg_catalog`, and runs before any statement that uses
//! the schema.

use tenure_store::Fault;
use tokio_postgres::SimpleQueryMessage;

use crate::connection::Connection;

/// Makes PostgreSQL look up names only where other roles cannot create objects.
pub(crate) const CATALOG: &str = "SET search_path = pg_catalog, pg_temp;";
/// Does the same as [`CATALOG`], until the end of the transaction.
pub(crate) const CATALOG_LOCAL: &str = "SET LOCAL search_path = pg_catalog, pg_temp;";

/// Name of the only column of the check.
const REFUSAL: &str = "refusal";

/// The query for the reason to refuse the schema; no row if there is none.
///
/// `a` lists the roles as which code of the schema runs. One is the owner of the table `migration`, who also owns the
/// functions. This role is another one if it migrates, if it could have created the schema, or if that table is missing.
/// All other roles trust the owner of the schema, because an administrator has given them access.
///
/// `c` lists the roles that can run code, each with the statement that prevents it, if there is one. Superusers, roles with
/// all rights of the role in `a`, and a group whose only member is that role are exempt. `pg_database_owner` means the
/// owner of this database.
///
/// PostgreSQL does not record who created a trigger, and evaluates its condition as the role that writes. So the role is
/// unknown, and refused, for a trigger with a condition or with a function that the owner of the table does not own.
///
/// `m` lists the members of groups. In PostgreSQL 16 and newer, the role that created a group is a member that may neither
/// inherit its rights nor become the group, so it does not count.
///
/// Any role with `CREATE` can make a table `migration`. So a statement proposes its owner as the schema's new owner only if the
/// connected role has the rights of that owner. Superusers have those of all roles, so they must own the table themselves.
///
/// A migration also checks the default privileges of the role that will own the new objects.
const FOREIGN: &str =
    "WITH n AS (SELECT s.oid, s.nspname, s.nspowner, s.nspacl FROM pg_namespace s WHERE s.nspname = '{schema}'),
     d AS (SELECT b.oid, b.datdba FROM pg_database b WHERE b.datname = current_database()),
     me AS (SELECT r.oid, r.rolname, r.rolsuper FROM pg_roles r WHERE r.rolname = CASE
         WHEN (SELECT s.rolsuper FROM pg_roles s WHERE s.rolname = session_user) THEN session_user ELSE current_user END),
     k AS (SELECT k.oid, k.relname, k.relkind, k.relowner, k.relacl FROM n JOIN pg_class k ON k.relnamespace = n.oid),
     t AS (SELECT k.relowner AS oid FROM k WHERE k.relname = 'migration' AND k.relkind = 'r'),
     a AS (SELECT me.oid, true AS is_me FROM me CROSS JOIN d WHERE {migrates} OR NOT EXISTS (SELECT FROM t)
             OR has_database_privilege(me.oid, d.oid, 'CREATE') OR pg_has_role(me.oid, d.datdba, 'USAGE')
         UNION ALL SELECT t.oid, false FROM t),
     m AS (SELECT g.roleid, g.member FROM pg_auth_members g WHERE coalesce((to_jsonb(g)->>'inherit_option')::bool, true)
         OR coalesce((to_jsonb(g)->>'set_option')::bool, true)),
     c (role, remedy) AS (
         SELECT n.nspowner, CASE WHEN NOT EXISTS (SELECT FROM t)
             THEN format('ALTER SCHEMA %I OWNER TO %I', n.nspname, (SELECT me.rolname FROM me))
             ELSE (SELECT format('ALTER SCHEMA %I OWNER TO %I', n.nspname, pg_get_userbyid(t.oid)) FROM t CROSS JOIN me
                 WHERE t.oid <> n.nspowner AND pg_get_userbyid(n.nspowner) <> 'pg_database_owner'
                     AND (t.oid = me.oid OR NOT me.rolsuper AND pg_has_role(session_user, t.oid, 'USAGE'))
                     AND NOT EXISTS (SELECT FROM a WHERE a.is_me AND NOT pg_has_role(t.oid, a.oid, 'USAGE'))) END FROM n
         UNION ALL SELECT g.grantee, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I%s REVOKE %s FROM %s', current_user,
             ' IN SCHEMA ' || quote_ident(n.nspname), w.things,
             CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END)
             FROM pg_default_acl d LEFT JOIN n ON n.oid = d.defaclnamespace CROSS JOIN LATERAL aclexplode(d.defaclacl) g
             JOIN (VALUES ('r', 'TRIGGER', 'TRIGGER, REFERENCES ON TABLES'), ('r', 'REFERENCES', 'TRIGGER, REFERENCES ON TABLES'),
                     ('n', 'CREATE', 'CREATE ON SCHEMAS')) w (kind, privilege, things)
                 ON w.kind = d.defaclobjtype::text AND w.privilege = g.privilege_type
             WHERE {migrates} AND pg_get_userbyid(d.defaclrole) = current_user
                 AND (n.oid IS NOT NULL OR d.defaclnamespace = 0) AND (w.kind = 'r' OR NOT EXISTS (SELECT FROM n))
         UNION ALL SELECT k.relowner, NULL FROM k WHERE k.relname IN ('migration', 'meta')
         UNION ALL SELECT g.grantee, format('REVOKE CREATE ON SCHEMA %I FROM %s', n.nspname,
             CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END)
             FROM n CROSS JOIN LATERAL aclexplode(n.nspacl) g WHERE g.privilege_type = 'CREATE'
         UNION ALL SELECT p.proowner,
             format('DROP ROUTINE %I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid))
             FROM n JOIN pg_proc p ON p.pronamespace = n.oid
         UNION ALL SELECT o.oprowner, 'DROP OPERATOR ' || o.oid::regoperator::text
             FROM n JOIN pg_operator o ON o.oprnamespace = n.oid
         UNION ALL SELECT g.grantee, format('REVOKE TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA %I FROM %s', n.nspname,
             CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END)
             FROM n CROSS JOIN k CROSS JOIN LATERAL (
                 SELECT r.grantee, r.privilege_type FROM aclexplode(k.relacl) r
                 UNION ALL SELECT r.grantee, r.privilege_type
                     FROM pg_attribute x CROSS JOIN LATERAL aclexplode(x.attacl) r WHERE x.attrelid = k.oid) g
             WHERE g.privilege_type IN ('TRIGGER', 'REFERENCES') AND k.relowner IN (SELECT t.oid FROM t)
         UNION ALL SELECT f.relowner, format('ALTER TABLE %s DROP CONSTRAINT %I', f.oid::regclass, x.conname)
             FROM k JOIN pg_constraint x ON x.confrelid = k.oid JOIN pg_class f ON f.oid = x.conrelid
             WHERE x.contype = 'f' AND x.conparentid = 0 AND k.relowner IN (SELECT t.oid FROM t)
         UNION ALL SELECT CASE WHEN x.tgqual IS NULL AND p.proowner = k.relowner THEN p.proowner END,
             format('DROP TRIGGER %I ON %s', x.tgname, k.oid::regclass)
             FROM k JOIN pg_trigger x ON x.tgrelid = k.oid JOIN pg_proc p ON p.oid = x.tgfoid
             WHERE NOT x.tgisinternal AND k.relowner IN (SELECT t.oid FROM t))
     SELECT format('%s may create functions in schema {schema} or owns or references objects there, and so could run code as %s; %s',
             CASE WHEN c.role IS NULL THEN 'an unknown role' WHEN c.role = 0 THEN 'every role' ELSE 'role ' || pg_get_userbyid(coalesce(r.oid, c.role))::text END,
             pg_get_userbyid(a.oid), coalesce('run `' || c.remedy || '`' || CASE WHEN c.remedy LIKE 'ALTER SCHEMA %' AND EXISTS (SELECT FROM t)
                 THEN format(', or make %s the owner of the tables and functions there and connect as that role,',
                     pg_get_userbyid(c.role)) ELSE '' END || ' if you trust all other objects there, or use another schema',
                 'use another schema, or connect as the role that owns this one')) AS refusal
     FROM c CROSS JOIN a LEFT JOIN pg_roles r ON r.oid = CASE pg_get_userbyid(c.role)
         WHEN 'pg_database_owner' THEN (SELECT d.datdba FROM d) ELSE c.role END
     WHERE (r.rolsuper OR pg_has_role(r.oid, a.oid, 'USAGE') OR NOT r.rolcanlogin
             AND EXISTS (SELECT FROM m WHERE m.roleid = r.oid AND m.member = a.oid)
             AND NOT EXISTS (SELECT FROM m WHERE m.roleid = r.oid AND m.member <> a.oid)) IS NOT TRUE
     ORDER BY a.is_me DESC, c.remedy NULLS FIRST LIMIT 1";

/// Returns the query for the reason to refuse the schema. A role that `migrates` will own functions there. Run the query
/// with the search path [`CATALOG`].
pub(crate) fn check(schema: &str, migrates: bool) -> String {
    FOREIGN.replace("{schema}", schema).replace("{migrates}", if migrates { "true" } else { "false" })
}

/// Refuses the schema if the answers to a [`check`] contain a reason.
pub(crate) fn heed(answers: &[SimpleQueryMessage]) -> Result<(), Fault> {
    match column(answers, REFUSAL) {
        Some(reason) => Err(Fault::Broken(reason.to_owned())),
        None => Ok(()),
    }
}

/// Refuses the schema if another role could run code as this role. Call it in the transaction that migrates the schema.
pub(crate) async fn refuse_foreign(connection: &mut Connection, schema: &str) -> Result<(), Fault> {
    let sql = format!("{CATALOG_LOCAL} {}; SET LOCAL search_path = \"{schema}\"", check(schema, true));
    heed(&connection.ask_text(&sql).await?)
}

/// Returns a `DO` block for a script. The block fails if another role could run code as the role that runs the script.
pub(crate) fn block(schema: &str) -> String {
    let check = check(schema, true);
    format!(
        "DO $tenure_check$ DECLARE reason text; BEGIN\n{check} INTO reason;\n\
         IF reason IS NOT NULL THEN RAISE EXCEPTION '%', reason; END IF;\nEND $tenure_check$;"
    )
}

/// Returns the value of the first row with a column of this name.
pub(crate) fn column<'a>(answers: &'a [SimpleQueryMessage], name: &str) -> Option<&'a str> {
    answers.iter().find_map(|answer| {
        let SimpleQueryMessage::Row(row) = answer else { return None };
        row.get(row.columns().iter().position(|column| column.name() == name)?)
    })
}
