//! From a URL to an open connection. This is where TLS comes in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tenure_store::{Fault, FaultCause};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Notification};

use crate::fault::{Effect, passing, text_of};
use crate::tls::Encrypts;

/// What hears the notifications of a connection.
pub(crate) type Ear = Box<dyn Fn(Notification) + Send>;

/// An open connection before anything was said on it.
pub(crate) struct Raw {
    pub client: Client,
    /// Set when the server has warned of something: after a commit, that it may not last.
    pub warned: Arc<AtomicBool>,
}

/// Connects. What the server says by itself goes to the ear.
pub(crate) async fn connect(
    config: &Config,
    encrypts: Option<Encrypts>,
    ear: Option<Ear>,
) -> Result<Raw, Fault> {
    let warned = Arc::new(AtomicBool::new(false));
    let client = match encrypts {
        None => {
            let (client, connection) = config.connect(NoTls).await.map_err(|error| no_connection(&error))?;
            tokio::spawn(drive(connection, Arc::clone(&warned), ear));
            client
        }
        Some(encrypts) => {
            let (client, connection) =
                config.connect(encrypts).await.map_err(|error| no_connection(&error))?;
            tokio::spawn(drive(connection, Arc::clone(&warned), ear));
            client
        }
    };
    Ok(Raw { client, warned })
}

/// Moves what is said between the client and the server until one of them has gone.
async fn drive<S, T>(mut connection: Connection<S, T>, warned: Arc<AtomicBool>, ear: Option<Ear>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let message = std::future::poll_fn(|context| match connection.poll_message(context) {
            Poll::Ready(message) => Poll::Ready(message),
            Poll::Pending => Poll::Pending,
        });
        match message.await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                if notice.severity() == "WARNING" {
                    tracing::warn!(message = notice.message(), "warning from the server");
                    warned.store(true, Ordering::Release);
                }
            }
            Some(Ok(AsyncMessage::Notification(notification))) => {
                if let Some(ear) = &ear {
                    ear(notification);
                }
            }
            Some(Ok(_)) => {}
            // Whoever waits for an answer on it hears of it.
            Some(Err(_)) | None => return,
        }
    }
}

fn no_connection(error: &tokio_postgres::Error) -> Fault {
    use std::error::Error;
    let Some(said) = error.as_db_error() else {
        let why = error.source().map_or_else(String::new, |source| format!(": {source}"));
        if is_about_trust(error) {
            return Fault::Broken(format!(
                "the server's TLS certificate does not meet the URL's requirements ({error}{why})"
            ));
        }
        // tokio-postgres says so of a server that is up, and takes no writes.
        let is_read_only = error
            .source()
            .and_then(|source| source.downcast_ref::<std::io::Error>())
            .is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        let text = match is_read_only {
            true => FaultCause::ReadOnly.as_str().to_owned(),
            false => format!("cannot connect to the server ({error}{why})"),
        };
        return passing(Effect::None, text);
    };
    let text = format!("the server refused the connection: {}", text_of(said));
    // A wrong password or a database that is not there is for a person to see to.
    if said.code().code().starts_with("28") || said.code().code().starts_with("3D") {
        return Fault::Broken(text);
    }
    Fault::Unavailable(text)
}

/// Whether a server has no TLS, or another certificate than was asked for: a person has to see to that.
fn is_about_trust(error: &tokio_postgres::Error) -> bool {
    use std::error::Error;
    let Some(source) = error.source() else { return false };
    let of_rustls = source.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let is_refused = of_rustls
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)));
    is_refused || source.to_string().contains("does not support TLS")
}
