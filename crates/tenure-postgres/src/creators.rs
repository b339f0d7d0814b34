//! Other roles that may create functions in the schema, or have created some.
//!
//! The functions of the schema run as its owner and look for names in the schema. PostgreSQL prefers a function or operator
//! whose parameters match the arguments better, so such a role could run code with the rights of the owner.

use tenure_store::Fault;

use crate::connection::Connection;
use crate::query::Query;

/// One such role, the owner, and the statement that ends the problem.
///
/// Exempt are the owner, superusers, and roles whose rights the owner inherits. An owner that is a superuser inherits the rights of
/// all roles, so for it, only superusers are exempt. `pg_database_owner` means the owner of this database.
const FOREIGN: &str = "WITH n AS (SELECT oid, nspname, nspowner, nspacl FROM pg_namespace WHERE nspname = $1),
     u AS (SELECT r.oid, r.rolname, r.rolsuper FROM pg_roles r WHERE r.oid = CASE WHEN $2 THEN current_user::regrole ELSE coalesce(
         (SELECT relowner FROM pg_class WHERE relnamespace = (SELECT oid FROM n) AND relname = 'migration'),
         current_user::regrole) END),
     c (role, remedy) AS (
         SELECT nspowner, format('ALTER SCHEMA %I OWNER TO %I', nspname, (SELECT rolname FROM u)) FROM n
         UNION ALL SELECT a.grantee, format('REVOKE CREATE ON SCHEMA %I FROM %s', nspname,
             CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
             FROM n CROSS JOIN LATERAL aclexplode(nspacl) a WHERE a.privilege_type = 'CREATE'
         UNION ALL SELECT proowner, format('DROP ROUTINE %I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(p.oid))
             FROM n JOIN pg_proc p ON p.pronamespace = n.oid
         UNION ALL SELECT oprowner, 'DROP OPERATOR ' || o.oid::regoperator FROM n JOIN pg_operator o ON o.oprnamespace = n.oid)
     SELECT CASE c.role WHEN 0 THEN 'every role' ELSE 'role ' || pg_get_userbyid(coalesce(r.oid, c.role)) END, u.rolname::text, c.remedy
     FROM c CROSS JOIN u LEFT JOIN pg_roles r ON r.oid = CASE c.role WHEN 'pg_database_owner'::regrole
             THEN (SELECT datdba FROM pg_database WHERE datname = current_database()) ELSE c.role END
     WHERE r.oid IS DISTINCT FROM u.oid AND r.rolsuper IS NOT TRUE
         AND (r.oid IS NULL OR u.rolsuper OR NOT pg_has_role(u.oid, r.oid, 'USAGE'))
     ORDER BY c.remedy LIMIT 1";

/// Refuses the schema if another role could run code as the owner of the functions. If this role `migrates`, it counts as
/// the owner, because it may come to own some of them.
pub(crate) async fn refuse_foreign(
    connection: &mut Connection,
    schema: &str,
    migrates: bool,
) -> Result<(), Fault> {
    let foreign = connection.read(Query::new(FOREIGN).with(schema.to_owned()).with(migrates)).await?;
    let Some(row) = foreign.first() else { return Ok(()) };
    let (role, owner, remedy): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
    Err(Fault::Broken(format!(
        "{role} may create functions in schema {schema}, or has created some, and so could run code as {owner}; \
         run `{remedy}` if you trust all other objects there, or use another schema"
    )))
}
