//! Hosts that are lost: killed, or cut off from the store.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use own_postgres::Server;
use rustix::process::{Pid, Signal, kill_process};

use crate::apps::stand::{SOON, Stand, lives, until};

/// Fails if it is told to, or works until its host is killed.
const WORK: &str = "echo $JOB_ATTEMPT >> $OUT/attempts; [ ! -e $OUT/fail ] || exit 1; exec sleep 600";

/// Kills so many hosts, each while it runs `work`.
fn kill_hosts(stand: &Stand, times: usize) {
    for time in 1..=times {
        let host = stand.host(&["--lease", "3s"]);
        if time == 1 {
            assert_eq!(stand.app(&["run", "work"]).code, 0);
        }
        stand.wait_for_lines("attempts", time, SOON);
        kill_process(Pid::from_raw(host.id().try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
}

/// T080: three hosts go down one after the other, and the program still has all the tries that it may fail in.
#[test]
fn t080_hosts_that_were_lost_spend_none_of_the_tries_of_a_program() {
    let stand =
        Stand::of(&[("triggered/work/run.sh", WORK), ("triggered/work/settings.job", r#"{"attempts":2}"#)]);
    kill_hosts(&stand, 3);
    std::fs::write(stand.out.join("fail"), "").unwrap();
    let _host = stand.host(&["--lease", "3s"]);
    until("it has failed", SOON, || stand.json(&["runs", "work"])["items"][0]["state"] == "failed");
    assert_eq!(stand.left_lines("attempts"), ["1", "2", "3", "4", "5"]);
    let detail = stand.json(&["runs", "work"])["items"][0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("exit code 1"), "{detail}");
}

/// What kills its host does not go round all hosts for ever, however often its program may fail.
#[test]
fn a_run_that_has_lost_four_hosts_has_failed() {
    let stand =
        Stand::of(&[("triggered/work/run.sh", WORK), ("triggered/work/settings.job", r#"{"attempts":100}"#)]);
    kill_hosts(&stand, 4);
    let _host = stand.host(&["--lease", "3s"]);
    until("it has failed", SOON, || stand.json(&["runs", "work"])["items"][0]["state"] == "failed");
    assert_eq!(stand.left_lines("attempts").len(), 4);
    let detail = stand.json(&["runs", "work"])["items"][0]["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail, "4 hosts died while running it");
}

/// With Kudu such a run is shown as running until somebody begins the next one.
#[test]
fn a_run_whose_last_host_is_gone_is_not_shown_as_running() {
    let stand = Stand::of(&[("triggered/work/run.sh", WORK)]);
    kill_hosts(&stand, 1);
    until("its time is over", SOON, || stand.json(&["runs", "work"])["items"][0]["state"] != "running");
    let run = stand.json(&["runs", "work"])["items"][0].clone();
    assert_eq!(
        (run["state"].as_str(), run["detail"].as_str()),
        (Some("lapsed"), Some("its host is gone; it will run again"))
    );
    assert!(stand.app(&["runs", "work"]).out.contains("lapsed"));
    let _host = stand.host(&["--lease", "3s"]);
    stand.wait_for_lines("attempts", 2, SOON);
    assert_eq!(stand.json(&["runs", "work"])["items"][0]["state"], "running");
}

/// A way to a server that can be cut: then nothing comes through, and nobody is told so.
struct Wire {
    port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Wire {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let wire = Self { port: listener.local_addr().unwrap().port(), is_cut: Arc::default() };
        let is_cut = Arc::clone(&wire.is_cut);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let is_cut = Arc::clone(&is_cut);
                    std::thread::spawn(move || pass_on(from, to, &is_cut));
                }
            }
        });
        wire
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut bytes = [0; 16 * 1024];
    let mut held = Vec::new();
    loop {
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => held.extend_from_slice(&bytes[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        if !is_cut.load(Ordering::SeqCst) {
            if to.write_all(&held).is_err() {
                break;
            }
            held.clear();
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Deaf to the signal, and not to be told twice; it leaves word if another one of its name lives when it begins.
const DEAF: &str = "trap 'echo $$ >> $OUT/told-$WEBJOBS_NAME' TERM\n\
    for other in $(cat $OUT/$WEBJOBS_NAME 2>/dev/null); do [ ! -e /proc/$other ] || echo $other >> $OUT/beside; done\n\
    echo $$ >> $OUT/$WEBJOBS_NAME; while :; do sleep 0.05; done";

/// A host that is cut off from the store knows by its own clock that its time is over: it tells its programs and kills them
/// before another host begins their successors.
#[test]
fn a_host_that_is_cut_off_ends_its_programs_before_another_begins_them() {
    let slow = r#"{"stopping_wait_time":60,"signal_after":60,"is_singleton":true}"#;
    let stand = Stand::of(&[
        ("triggered/work/run.sh", DEAF),
        ("triggered/work/settings.job", r#"{"stopping_wait_time":60,"signal_after":60}"#),
        ("continuous/only/run.sh", DEAF),
        ("continuous/only/settings.job", slow),
    ]);
    let server = Server::start_hasty().unwrap();
    let (url, wire) = (server.url(), Wire::to(server.port()));
    let through = url.replace(&format!(":{}", server.port()), &format!(":{}", wire.port));
    assert_ne!(through, url);
    // A program has a tenth of the lease to take note of the signal, on a machine that runs much else.
    let mut away = stand.host(&["--db", &through, "--lease", "15s"]);
    assert_eq!(stand.app_at(&url, &["run", "work"]).code, 0);
    let first = ["work", "only"].map(|name| stand.wait_for_lines(name, 1, SOON)[0].clone());
    let _other = stand.host(&["--db", &url, "--lease", "15s"]);
    until("the other one stands by", SOON, || stand.app_at(&url, &["list"]).out.contains("standing_by"));
    wire.cut(true);
    for (name, first) in ["work", "only"].into_iter().zip(&first) {
        stand.wait_for_lines(name, 2, Duration::from_secs(60));
        assert!(!lives(first), "{name} has ended before its successor has begun");
        assert_eq!(
            stand.left_lines(&format!("told-{name}")),
            [first.as_str()],
            "it was told before it was killed"
        );
    }
    assert_eq!(stand.left("beside"), "", "no two of them lived at once");
    wire.cut(false);
    until("it is back", SOON, || stand.app_at(&url, &["list"]).out.contains("standing_by"));
    let begun = ["work", "only"].map(|name| stand.left_lines(name).len());
    assert_eq!(begun, [2, 2], "it has begun neither again");
    away.terminate();
    assert_eq!(away.end(SOON), Some(0));
}
