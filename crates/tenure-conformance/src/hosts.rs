//! What the list of hosts promises.

use tenure_core::{Serves, limits};

use super::given::{Given, TTL, host, kind, minutes, queue, seconds, want};
use super::{Test, test};
use tenure_store::{Host, LostHost, Reserve};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(an_announced_host_is_listed_as_it_announced_itself),
        test(a_host_counts_as_alive_until_its_time_is_over),
        test(a_host_that_announces_itself_again_keeps_its_start),
        test(a_host_announces_what_it_serves_now),
        test(hosts_are_listed_by_id),
        test(a_retired_host_is_not_listed),
        test(retiring_leaves_reservations_alone),
        test(retiring_what_is_not_there_is_harmless),
        test(a_host_that_falls_silent_is_lost_until_it_announces_itself_again),
        test(a_retired_host_is_not_lost),
        test(a_lost_host_is_listed_with_the_jobs_that_were_taken_from_it),
        test(tending_keeps_lost_hosts_for_a_day),
        test(tending_keeps_the_latest_lost_hosts),
    ]
}

fn serves() -> Vec<Serves> {
    vec![
        Serves { queue: queue("mail"), kinds: None, slots: 8, all_waiting: true },
        Serves {
            queue: queue("post"),
            kinds: Some(vec![kind("send"), kind("print")]),
            slots: 1,
            all_waiting: false,
        },
        Serves { queue: queue("fax"), kinds: Some(vec![]), slots: 0, all_waiting: false },
    ]
}

async fn announce(given: &Given, number: u8) {
    given.store.announce(host(number), "web-3 (pid 4711)", 6, &serves(), TTL).await.unwrap();
}

async fn listed(given: &Given) -> Vec<Host> {
    given.store.hosts().await.unwrap()
}

async fn an_announced_host_is_listed_as_it_announced_itself(given: Given) {
    assert_eq!(listed(&given).await, []);
    announce(&given, 1).await;
    let (started, until) = (given.now(), given.now().after(TTL));
    let expected = Host {
        id: host(1),
        name: "web-3 (pid 4711)".to_owned(),
        started,
        heard: started,
        until,
        slots: 6,
        serves: serves(),
    };
    assert_eq!(listed(&given).await, [expected]);
}

async fn a_host_counts_as_alive_until_its_time_is_over(given: Given) {
    announce(&given, 1).await;
    given.pass(TTL - seconds(1));
    assert_eq!(listed(&given).await.len(), 1);
    given.pass(seconds(1));
    assert_eq!(listed(&given).await, []);
}

async fn a_host_that_announces_itself_again_keeps_its_start(given: Given) {
    announce(&given, 1).await;
    let started = given.now();
    given.pass(seconds(20));
    announce(&given, 1).await;
    let hosts = listed(&given).await;
    assert_eq!((hosts.len(), hosts[0].started, hosts[0].until), (1, started, given.now().after(TTL)));
    assert_eq!(hosts[0].heard, given.now());
}

async fn a_host_announces_what_it_serves_now(given: Given) {
    announce(&given, 1).await;
    let now_serves = vec![Serves { queue: queue("mail"), kinds: None, slots: 2, all_waiting: false }];
    given.store.announce(host(1), "renamed", 1, &now_serves, minutes(5)).await.unwrap();
    let hosts = listed(&given).await;
    assert_eq!((hosts[0].name.as_str(), hosts[0].slots, &hosts[0].serves), ("renamed", 1, &now_serves));
    assert_eq!(hosts[0].until, given.now().after(minutes(5)));
}

async fn hosts_are_listed_by_id(given: Given) {
    for number in [7, 1, 200, 3] {
        announce(&given, number).await;
    }
    let ids: Vec<_> = listed(&given).await.into_iter().map(|host| host.id).collect();
    assert_eq!(ids, [host(1), host(3), host(7), host(200)]);
}

async fn a_retired_host_is_not_listed(given: Given) {
    announce(&given, 1).await;
    announce(&given, 2).await;
    given.store.retire(host(1)).await.unwrap();
    let ids: Vec<_> = listed(&given).await.into_iter().map(|host| host.id).collect();
    assert_eq!(ids, [host(2)]);
    announce(&given, 1).await;
    assert_eq!(listed(&given).await.len(), 2, "it may come back");
}

async fn retiring_leaves_reservations_alone(given: Given) {
    given.store.announce(given.holder, "web-1", 6, &serves(), TTL).await.unwrap();
    let reserved = given.running().await;
    given.store.retire(given.holder).await.unwrap();
    assert_eq!(given.job(reserved.job().id).await, *reserved.job());
    given.succeed(reserved).await;
}

async fn retiring_what_is_not_there_is_harmless(given: Given) {
    announce(&given, 1).await;
    given.store.retire(host(2)).await.unwrap();
    given.store.retire(host(1)).await.unwrap();
    given.store.retire(host(1)).await.unwrap();
    assert_eq!(listed(&given).await, []);
}

async fn lost(given: &Given) -> Vec<LostHost> {
    given.store.lost_hosts().await.unwrap()
}

async fn a_host_that_falls_silent_is_lost_until_it_announces_itself_again(given: Given) {
    announce(&given, 1).await;
    let (started, until) = (given.now(), given.now().after(TTL));
    assert_eq!(lost(&given).await, []);
    given.pass(TTL);
    given.tend().await;
    let found = lost(&given).await;
    let times = |host: &Host| (host.started, host.heard, host.until);
    assert_eq!((found.len(), times(&found[0].host)), (1, (started, started, until)));
    assert_eq!((found[0].host.name.as_str(), &found[0].host.serves), ("web-3 (pid 4711)", &serves()));
    announce(&given, 1).await;
    assert_eq!((lost(&given).await, listed(&given).await[0].started), (Vec::new(), started));
}

async fn a_retired_host_is_not_lost(given: Given) {
    announce(&given, 1).await;
    given.store.retire(host(1)).await.unwrap();
    given.pass(TTL);
    assert_eq!(lost(&given).await, []);
}

async fn a_lost_host_is_listed_with_the_jobs_that_were_taken_from_it(given: Given) {
    given.store.announce(given.holder, "web-1", 6, &serves(), TTL).await.unwrap();
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.pass(TTL);
    given.tend().await;
    let jobs = |lost: Vec<LostHost>| lost.into_iter().map(|lost| lost.jobs).collect::<Vec<_>>();
    assert_eq!(jobs(lost(&given).await), [[id]]);
    // Another host has it, and the first one is still known to have lost it.
    announce(&given, 2).await;
    let ask = Reserve { holder: host(2), ..given.ask(vec![want("mail", 1)], 1) };
    let again = given.turn(ask).await.jobs.pop().expect("it is due again");
    given.succeed(again).await;
    assert_eq!(jobs(lost(&given).await), [[id]]);
}

async fn tending_keeps_lost_hosts_for_a_day(given: Given) {
    announce(&given, 1).await;
    given.pass(TTL + limits::LOST_HOSTS_KEPT - seconds(1));
    given.tend().await;
    assert_eq!(lost(&given).await.len(), 1);
    given.pass(seconds(1));
    assert_eq!(lost(&given).await, []);
    given.tend().await;
    announce(&given, 1).await;
    assert_eq!(listed(&given).await[0].started, given.now(), "a forgotten host starts anew");
}

async fn tending_keeps_the_latest_lost_hosts(given: Given) {
    announce(&given, 255).await;
    given.pass(seconds(1));
    for number in 0..u8::try_from(limits::LOST_HOSTS).unwrap() {
        announce(&given, number).await;
    }
    given.pass(TTL);
    given.tend().await;
    let (found, first) = (lost(&given).await, host(255));
    assert_eq!((found.len(), found.iter().any(|lost| lost.host.id == first)), (limits::LOST_HOSTS, false));
    announce(&given, 255).await;
    assert_eq!(listed(&given).await[0].started, given.now(), "the oldest one was forgotten");
}
