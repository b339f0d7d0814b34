//! A PostgreSQL cluster of our own: made for one run, gone after it.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio_postgres::{Client, NoTls};

type Failure = Box<dyn std::error::Error>;

/// Where Debian keeps the programs of PostgreSQL 15, if `PG_BIN` does not say otherwise.
const BIN: &str = "/usr/lib/postgresql/15/bin";

/// Durability as it comes; memory and checkpoints so that neither decides. Vacuum comes when a plan asks for it.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 100
shared_buffers = 1GB
max_wal_size = 4GB
checkpoint_timeout = 30min
autovacuum = off
logging_collector = off
log_min_messages = fatal
";

/// A running cluster. Dropping it stops the server and removes its files.
pub struct Cluster {
    dir: PathBuf,
    port: u16,
    user: Option<(u32, u32)>,
}

impl Cluster {
    /// Makes a cluster in a new folder and starts it on a free port.
    pub fn start() -> Result<Cluster, Failure> {
        let dir = std::env::temp_dir().join(format!("shapes-postgres-{}", std::process::id()));
        std::fs::create_dir(&dir)?;
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let cluster = Cluster { user: unprivileged(), dir, port };
        if let Some((uid, gid)) = cluster.user {
            chown(&cluster.dir, Some(uid), Some(gid))?;
        }
        let data = cluster.data();
        cluster
            .run("initdb", &["-D", text(&data), "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-locale"])?;
        let settings = data.join("postgresql.conf");
        let written = std::fs::read_to_string(&settings)? + SETTINGS + &format!("port = {port}\n");
        std::fs::write(&settings, written)?;
        let log = cluster.dir.join("server.log");
        cluster.run("pg_ctl", &["-D", text(&data), "-l", text(&log), "-w", "start"])?;
        Ok(cluster)
    }

    /// A new connection, driven by a task of its own.
    pub async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        let url = format!("host=127.0.0.1 port={} user=bench dbname=postgres", self.port);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// The process number of the server.
    pub fn server(&self) -> Result<i32, Failure> {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid"))?;
        Ok(file.lines().next().ok_or("an empty pid file")?.parse()?)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn run(&self, program: &str, args: &[&str]) -> Result<(), Failure> {
        let bin = std::env::var("PG_BIN").unwrap_or_else(|_| BIN.to_owned());
        let mut command = Command::new(Path::new(&bin).join(program));
        command.args(args).current_dir(&self.dir).stdin(Stdio::null()).stdout(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        if command.status()?.success() { Ok(()) } else { Err(format!("{program} failed").into()) }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        // Whatever fails here is left behind in a temporary folder, and there is nobody to tell.
        let _ = self.run("pg_ctl", &["-D", text(&data), "-m", "immediate", "-w", "stop"]);
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The server refuses to run as root: then it runs as the user `postgres`.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let fields: Vec<&str> = line.split(':').collect();
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
