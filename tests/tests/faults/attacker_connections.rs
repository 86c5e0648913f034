//! Raw connections of the attacking tenant: requests whose responses are never read.

use std::{collections::BTreeMap, time::Duration};

use tests::raw::status;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::installation::Installation;

/// Opens a connection with a small receive buffer, so that unread bytes stay in the server.
pub async fn connect(installation: &Installation) -> TcpStream {
    let address = installation.server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 * 1024).unwrap();
    socket.connect(address).await.unwrap()
}

/// Sends the same `GET` on many connections and holds them open without reading.
pub async fn ask_without_reading(
    installation: &Installation,
    path: &str,
    connections: usize,
    hold: Duration,
) -> Vec<TcpStream> {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", installation.attacker);
    let mut sockets = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut socket = connect(installation).await;
        socket.write_all(request.as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    tokio::time::sleep(hold).await;
    sockets
}

/// Counts the responses by status: 0 if there is none within `patience`, 1 if the server closed the
/// connection without a response. Closes the connections.
pub async fn responses(sockets: Vec<TcpStream>, patience: Duration) -> BTreeMap<u16, usize> {
    let mut statuses = BTreeMap::new();
    for mut socket in sockets {
        let mut start = [0; 12];
        let read = tokio::time::timeout(patience, socket.read_exact(&mut start)).await;
        let status = match read {
            Ok(Ok(_)) => status(&String::from_utf8_lossy(&start)),
            Ok(Err(_)) => 1,
            Err(_) => 0,
        };
        *statuses.entry(status).or_default() += 1;
    }
    statuses
}
