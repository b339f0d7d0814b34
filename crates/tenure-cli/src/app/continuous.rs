//! A continuous app on a host: begun, and begun again whenever it ends.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::apps::Standing;
use tenure::{Duty, Failed, Stopping};
use tenure_apps::{App, Environment, LineLimit, rest};
use tenure_program::{Input, Program};
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, KillOnDrop, Lines, Saying, Terms, Went, Why};
use super::host::Host;
use super::lease::HeldUntil;
use super::place::ready;
use crate::screen::complain;

/// How often what it says is written down.
const PASS_ON: Duration = Duration::from_secs(1);
/// For so long what was said last is passed on when it has ended, and in so many portions at most.
const LAST_LINES: Duration = Duration::from_secs(5);
const PORTIONS: usize = 20;
/// Lines and bytes that are written down in one go.
const LINES: usize = 1_000;
const BYTES: usize = 512 * 1024;
/// It is said that it still runs after so long, and then again and again.
const FIRST_SIGN: Duration = Duration::from_secs(3_600);
const LATER_SIGNS: Duration = Duration::from_secs(12 * 3_600);

/// What is waited for of an app that somebody may switch.
const STOPPED: bool = true;
const STARTED: bool = false;

/// By which right it runs: as one of many, or as the only one.
pub(super) enum Office {
    /// On every host.
    Everywhere(CancellationToken),
    /// On the host that has the lease.
    Alone(Duty<Arc<Host>>),
}

impl Office {
    /// Resolves when it shall stop here.
    async fn ends(&self) -> Why {
        match self {
            Self::Everywhere(stop) => {
                stop.cancelled().await;
                Why::HostStops
            }
            Self::Alone(duty) => match duty.stopped().await {
                Stopping::HostStops => Why::HostStops,
                Stopping::Cancelled { .. }
                | Stopping::Lost
                | Stopping::SingletonLost
                | Stopping::TimedOut => Why::Lost,
            },
        }
    }

    fn held_until(&self) -> HeldUntil {
        match self {
            Self::Everywhere(_) => Box::new(|| None),
            Self::Alone(duty) => {
                let pass = duty.pass().clone();
                Box::new(move || pass.held_until())
            }
        }
    }

    fn lease(&self) -> Option<(String, u64)> {
        match self {
            Self::Everywhere(_) => None,
            Self::Alone(duty) => Some((duty.pass().name().to_string(), duty.fence().number())),
        }
    }
}

/// Keeps it running until its office ends.
pub(super) async fn keep(host: Arc<Host>, app: Arc<App>, office: Office) -> Result<(), Failed> {
    let ordinary = app.settings.restart.unwrap_or(host.overall.restart);
    let clock = host.tenure.store().clock();
    let mut crashes = 0;
    host.holds(&app, office.lease().map(|(_, fence)| fence));
    // Of all its runs together: one that crashes again and again says no more than one that does not.
    let (limit, began) = (Arc::new(Mutex::new(LineLimit::new(host.as_kudu))), clock.moment());
    loop {
        if let Some(reason) = host.is_stopped(&app) {
            host.stands(&app, Standing::Stopped, &reason);
            tokio::select! {
                biased;
                _ = office.ends() => break,
                () = host.until_it_is(&app, STARTED) => {}
            }
            crashes = 0;
        }
        let saying = Saying::new(Arc::clone(&limit), clock.moment().since(began));
        let went = once(&host, &app, &office, saying).await;
        match &went.why {
            Some(Why::HostStops | Why::Lost) => break,
            Some(Why::Stopped(_)) => {
                crashes = 0;
                continue;
            }
            Some(Why::Cancelled(_) | Why::TimedOut(_) | Why::Idle(_)) | None => {}
        }
        crashes = if went.took >= tenure_apps::STEADY { 0 } else { crashes + 1 };
        let pause = rest(ordinary, went.took, crashes);
        let words = format!("Process went down, waiting for {} seconds", pause.as_secs());
        host.stands(&app, Standing::Resting, &format!("it {}; {words}", went.words));
        say(&host, &app, &[format!("run: {words}")]).await;
        tokio::select! {
            biased;
            _ = office.ends() => break,
            () = host.until_it_is(&app, STOPPED) => {}
            () = clock.sleep(pause) => {}
        }
    }
    host.holds(&app, None);
    host.stands(&app, Standing::StandingBy, "");
    Ok(())
}

/// Runs it once, until it has ended.
async fn once(host: &Arc<Host>, app: &Arc<App>, office: &Office, saying: Saying) -> Went {
    host.stands(app, Standing::Starting, "");
    let did_not = |words: String| Went {
        end: None,
        why: None,
        result: Ok(None),
        location: None,
        words,
        took: Duration::ZERO,
    };
    let run = host.tenure.new_id().to_string();
    let placed = ready(host, app, run, office.ends()).await;
    let placed = placed.and_then(|(copy, data)| {
        Ok((host.bounds.confinement(app, (&copy, &data), &host.places.state)?, copy, data))
    });
    let (confinement, copy, data) = match placed {
        Ok(placed) => placed,
        Err(why) => return did_not(format!("could not start: {why}")),
    };
    let environment = Environment {
        place: copy.path.clone(),
        data,
        lease: office.lease(),
        port: free_port(),
        arguments: app.settings.arguments.clone(),
        ..Environment::default()
    };
    let program = Program {
        command: app.command.iter().cloned().chain(app.settings.arguments.iter().map(Into::into)).collect(),
        env: environment.of(app),
        inherits: host.bounds.inherits(app),
        limits: host.bounds.limits(app),
        rights: host.bounds.rights(app),
        confinement,
        folder: Some(copy.path.clone()),
        input: Input::Nothing,
        ..Program::default()
    };
    let terms = Terms {
        stopping_wait: app.settings.stopping_wait,
        last_words: host.last_words(),
        signal_after: app.settings.signal_after,
        timeout: None,
        idle: None,
    };
    match Desk::begin(Lines::ForEver(saying), program, terms, office.held_until()) {
        Ok((desk, went, guard)) => {
            host.stands(app, Standing::Running, "");
            let went = attended(host, app, office, (&desk, went, guard)).await;
            went.unwrap_or_else(|| did_not("was lost with its supervisor".to_owned()))
        }
        Err(error) => did_not(format!("could not start a thread: {error}")),
    }
}

type Begun<'a> = (&'a Desk, tokio::sync::oneshot::Receiver<Went>, KillOnDrop);

/// Hears it until it has ended; tells it to stop when its office ends, or somebody has stopped it.
async fn attended(
    host: &Host,
    app: &App,
    office: &Office,
    (desk, mut went, guard): Begun<'_>,
) -> Option<Went> {
    let clock = host.tenure.store().clock();
    let began = clock.moment();
    let (mut is_told, mut is_killed, mut next_sign) = (false, false, FIRST_SIGN);
    let mut ended = None;
    while ended.is_none() {
        let now = clock.moment().since(began);
        if now >= next_sign {
            next_sign = now + LATER_SIGNS;
            desk.say(now, "run: WebJob is still running".to_owned());
        }
        if let Some(reason) = host.is_stopped(app).filter(|_| !is_told) {
            host.stands(app, Standing::Stopping, &reason);
            desk.stop(Why::Stopped(reason));
        }
        let passing = async {
            clock.sleep(PASS_ON).await;
            pass_on(host, app, desk).await
        };
        tokio::pin!(passing);
        loop {
            tokio::select! {
                biased;
                went = &mut went, if ended.is_none() => ended = Some(went.ok()),
                // It is heard while the store does not answer, too: then most of all.
                why = office.ends(), if !is_told => {
                    is_told = true;
                    host.stands(app, Standing::Stopping, &why.words());
                    desk.stop(why);
                }
                () = host.kill.cancelled(), if !is_killed => {
                    is_killed = true;
                    desk.kill_with_its_host();
                }
                _ = &mut passing => break,
                () = clock.sleep(LAST_LINES), if ended.is_some() => break,
            }
        }
    }
    drop(guard);
    for _ in 0..PORTIONS {
        let is_over = tokio::select! {
            biased;
            passed = pass_on(host, app, desk) => !passed,
            () = clock.sleep(LAST_LINES) => true,
        };
        if is_over {
            break;
        }
    }
    ended.flatten()
}

/// Answers whether there was anything.
async fn pass_on(host: &Host, app: &App, desk: &Desk) -> bool {
    let (lines, progress) = desk.heard(LINES, BYTES);
    if let Some(progress) = progress {
        let words = format!("{:.0} % {}", progress.fraction * 100.0, progress.message);
        host.stands(app, Standing::Running, words.trim());
    }
    say(host, app, &lines).await;
    !lines.is_empty()
}

/// What cannot be written down is lost, and the app goes on.
async fn say(host: &Host, app: &App, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let written = async { host.apps()?.say(&app.name, &host.node, lines).await };
    if let Err(error) = written.await {
        complain(&format!("{} lines of {} were not stored: {error}", lines.len(), app.name));
    }
}

/// A port that nobody uses right now.
fn free_port() -> Option<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    Some(listener.local_addr().ok()?.port())
}
