//! The tables as the package has them.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    their_tables::write("fang", "postgres_migrations/migrations")
}
