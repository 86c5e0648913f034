//! From a name to addresses.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
};

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// The addresses of a name, to come.
pub type Lookup<'a> = BoxFuture<'a, io::Result<Vec<IpAddr>>>;

/// Who knows the addresses of names.
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of a name, IPv4 and IPv6. An empty answer is as good as an error.
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// Look-ups at the same time. The system's resolver blocks a thread for as long as somebody's
/// slow name server likes; what else needs such threads shall not wait for that.
const LOOKUPS: usize = 64;

/// The system's resolver: the hosts file, DNS, whatever the machine is set up with.
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                // Whoever asked may have given up; the thread is busy all the same.
                let _permit = permit;
                (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|it| it.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// A resolver that knows what it is told, and nothing else.
#[cfg(feature = "fakes")]
#[derive(Default)]
pub struct FakeResolver(std::sync::Mutex<std::collections::HashMap<String, Vec<IpAddr>>>);

#[cfg(feature = "fakes")]
impl FakeResolver {
    /// From now on the name has these addresses.
    pub fn set(&self, name: &str, addresses: &[IpAddr]) {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.insert(name.to_owned(), addresses.to_vec());
    }
}

#[cfg(feature = "fakes")]
impl Resolver for FakeResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        let known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let found = known.get(name).cloned();
        Box::pin(async move { found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)) })
    }
}
