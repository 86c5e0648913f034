//! Receivers with a configurable behaviour, which count their connections.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A listener on a loopback address.
pub struct Receiver {
    /// The address of the listener.
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// Listens on a free port of 127.0.0.1 and passes each connection to `handle`.
    pub async fn new<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::at("127.0.0.1:0", handle).await.unwrap()
    }

    /// Listens on this address; returns `None` if the machine does not have it.
    pub async fn at<F>(address: &str, handle: impl Fn(TcpStream) -> F + Send + 'static) -> Option<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.ok()?;
        let address = listener.local_addr().unwrap();
        let (connections, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (came, went) = (Arc::clone(&connections), Arc::clone(&closed));
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                came.fetch_add(1, Ordering::SeqCst);
                let (handling, went) = (handle(socket), Arc::clone(&went));
                tokio::spawn(async move {
                    handling.await;
                    went.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Some(Self { address, connections, closed, heads: Arc::default(), serving })
    }

    /// Reads the head of each request and responds with these bytes.
    pub async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let (bytes, heads) = (Arc::new(bytes.into()), Arc::<Mutex<Vec<String>>>::default());
        let seen = Arc::clone(&heads);
        let mut receiver = Self::new(move |mut socket| {
            let (bytes, seen) = (Arc::clone(&bytes), Arc::clone(&seen));
            async move {
                while let Some(head) = request(&mut socket).await {
                    seen.lock().unwrap().push(head);
                    if socket.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
            }
        })
        .await;
        receiver.heads = heads;
        receiver
    }

    /// Responds to each request with these bytes and closes the connection.
    pub async fn closing(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(bytes.into());
        Self::new(move |mut socket| {
            let bytes = Arc::clone(&bytes);
            async move {
                request(&mut socket).await;
                _ = socket.write_all(&bytes).await;
                _ = socket.shutdown().await;
            }
        })
        .await
    }

    /// Responds with the first bytes, and then repeats the others until the connection is closed.
    pub async fn endless(first: &'static str, then: impl Into<Vec<u8>>, every: Duration) -> Self {
        let then = Arc::new(then.into());
        Self::new(move |mut socket| {
            let then = Arc::clone(&then);
            async move {
                request(&mut socket).await;
                let (mut reading, mut writing) = socket.split();
                let write = async {
                    let mut written = writing.write_all(first.as_bytes()).await;
                    while written.is_ok() {
                        if !every.is_zero() {
                            tokio::time::sleep(every).await;
                        }
                        written = writing.write_all(&then).await;
                    }
                };
                let mut byte = [0];
                tokio::select! {
                    () = write => {}
                    // The other side closed the connection.
                    _ = reading.read(&mut byte) => {}
                }
            }
        })
        .await
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns the heads of the requests to a receiver created by [`Self::answering`].
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Waits until no connection is left; panics after some seconds.
    pub async fn wait_until_closed(&self) {
        for _ in 0..500 {
            if self.closed.load(Ordering::SeqCst) == self.connections() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("a connection is still open");
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Reads a request and returns its head; `None` at the end of the connection.
pub async fn request(socket: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(at) = read.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let head = String::from_utf8(read[..end].to_vec()).unwrap();
    let length =
        head.lines().find_map(|it| it.strip_prefix("content-length: ")).map_or(0, |it| it.parse().unwrap());
    while read.len() < end + length {
        if socket.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return None;
        }
    }
    Some(head)
}
