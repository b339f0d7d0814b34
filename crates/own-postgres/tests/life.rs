//! A server lives as long as whoever started it, and survives what is done to it.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::net::{TcpStream, UdpSocket};

use own_postgres::Server;

fn answers(server: &Server) -> bool {
    TcpStream::connect(("127.0.0.1", server.port())).is_ok()
}

#[test]
fn a_server_answers_until_it_is_dropped_and_leaves_nothing_behind() {
    let server = Server::start_hasty().unwrap();
    let (directory, port) = (server.directory().to_owned(), server.port());
    assert!(answers(&server) && server.url().contains(&port.to_string()));
    drop(server);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!directory.exists());
}

#[test]
fn a_server_comes_back_after_a_crash_and_after_a_stop() {
    let server = Server::start_hasty().unwrap();
    server.crash().unwrap();
    assert!(!answers(&server));
    server.start_again().unwrap();
    assert!(answers(&server));
    server.stop().unwrap();
    assert!(!answers(&server));
    server.start_again().unwrap();
    assert!(answers(&server));
}

#[test]
fn a_setting_that_does_not_exist_is_told_with_what_the_server_said() {
    let error = Server::start_with(&["no_such_setting=1"]).unwrap_err();
    assert!(error.to_string().contains("did not start"), "{error}");
}

#[test]
fn a_replica_is_promoted_after_its_primary_was_lost() {
    let primary = Server::start_hasty().unwrap();
    let replica = primary.replica(&[]).unwrap();
    assert!(answers(&replica) && replica.port() != primary.port());
    replica.hold().unwrap();
    primary.crash().unwrap();
    replica.promote().unwrap();
    assert!(answers(&replica));
    assert!(!replica.directory().join("data/standby.signal").exists(), "it takes writes");
}

#[test]
fn a_server_that_was_lost_comes_back_as_a_replica_of_its_successor() {
    let first = Server::start_hasty().unwrap();
    let second = first.replica(&[]).unwrap();
    first.crash().unwrap();
    second.promote().unwrap();
    first.follow(&second).unwrap();
    assert!(answers(&first));
    assert!(first.directory().join("data/standby.signal").exists(), "it takes no writes");
    second.crash().unwrap();
    first.promote().unwrap();
    assert!(answers(&first));
}

#[test]
fn a_server_that_is_no_replica_is_not_promoted() {
    let server = Server::start_hasty().unwrap();
    assert!(server.promote().is_err());
}

/// Between the moment a port is chosen and the moment its server listens, and while a server is down, nobody else has it.
#[test]
fn the_port_of_a_server_is_its_own_also_while_it_is_down() {
    let server = Server::start_hasty().unwrap();
    server.stop().unwrap();
    let other = Server::start_hasty().unwrap();
    assert_ne!(server.port(), other.port());
    assert!(UdpSocket::bind(("127.0.0.1", server.port())).is_err(), "others know that somebody has it");
    server.start_again().unwrap();
    assert!(answers(&server) && answers(&other));
}
