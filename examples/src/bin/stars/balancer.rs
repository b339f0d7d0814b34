//! A small load balancer: it passes each connection to the next live instance.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

pub async fn balance(listener: TcpListener, instances: Vec<SocketAddr>) {
    let mut turns = (0..instances.len()).cycle();
    while let (Ok((client, _)), Some(turn)) = (listener.accept().await, turns.next()) {
        // The others stand by.
        let (others, first) = instances.split_at(turn);
        tokio::spawn(pass_on(client, [first, others].concat()));
    }
}

async fn pass_on(mut client: TcpStream, instances: Vec<SocketAddr>) {
    for address in instances {
        if let Ok(mut instance) = TcpStream::connect(address).await {
            // Either side can end at any time. Then the other is cut off, and the client repeats its request.
            let _ = copy_bidirectional(&mut client, &mut instance).await;
            return;
        }
    }
}
