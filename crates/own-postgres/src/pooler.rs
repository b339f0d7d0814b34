//! A PgBouncer before a server.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};

use crate::{Error, Place, Server, as_ordinary_user, binaries};

/// The script that keeps it: it is gone when its input ends, also when whoever started it is killed.
const KEEPER: &str = r#"
"$1" -q "$2" >/dev/null &
pooler=$!
tries=0
until "$3/pg_isready" -q -h 127.0.0.1 -p "$4"; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] && kill -0 "$pooler" 2>/dev/null || { echo "it does not answer"; kill -9 "$pooler"; exit 1; }
    sleep 0.05
done
echo up
read -r _ || true
kill -9 "$pooler"
"#;

/// A running PgBouncer, through which a server is reached.
#[derive(Debug)]
pub struct Pooler {
    place: Place,
    keeper: Child,
    says: Option<ChildStdin>,
}

impl Server {
    /// Puts a PgBouncer before this server that gives each of its connections to somebody else after each transaction;
    /// `settings` are further ones, each `name=value`. Installs Debian's package if there is none and it may.
    ///
    /// # Errors
    /// There is no such program, or it does not start.
    pub fn pooler(&self, settings: &[&str]) -> Result<Pooler, Error> {
        let program = binaries::find_or_install_pooler()?;
        let lost = |error: std::io::Error| Error::NotRunning(format!("start a pooler: {error}"));
        let place = Place::find().map_err(lost)?;
        let port = place.port;
        let server = self.port();
        let all = format!(
            "[databases]\npostgres = host=127.0.0.1 port={server} user=postgres dbname=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\nunix_socket_dir =\n\
             pool_mode = transaction\n{}\n",
            settings.join("\n")
        );
        let file = format!("pgbouncer-{port}.ini");
        self.put(&file, &all)?;
        let path: PathBuf = self.directory().join("data").join(&file);
        let mut keeper = as_ordinary_user()
            .args(["sh", "-c", KEEPER, "sh"])
            .arg(program)
            .arg(path)
            .arg(binaries::find_or_install()?)
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(lost)?;
        let says = keeper.stdin.take();
        let mut line = String::new();
        if let Some(hears) = keeper.stdout.take() {
            BufReader::new(hears).read_line(&mut line).map_err(lost)?;
        }
        let pooler = Pooler { place, keeper, says };
        if line.trim() == "up" { Ok(pooler) } else { Err(Error::NotRunning(format!("pool: {line}"))) }
    }
}

impl Pooler {
    /// The URL of the server's database, through it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.place.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.says.take());
        let _ = self.keeper.wait();
    }
}
