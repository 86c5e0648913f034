//! Resolves names to addresses.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
};

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// A pending name resolution.
pub type Lookup<'a> = BoxFuture<'a, io::Result<Vec<IpAddr>>>;

/// Resolves names to addresses.
pub trait Resolver: Send + Sync + 'static {
    /// Returns all addresses of a name, IPv4 and IPv6. An empty result is treated as an error.
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// Number of groups of look-ups. A look-up blocks a thread until the name server responds. A slow name server can
/// block only the one group of its names, and all groups together use at most half of the threads.
const LOOKUP_GROUPS: usize = 32;

/// Maximum number of concurrent look-ups in a group.
const MAX_LOOKUPS_PER_GROUP: usize = 8;

/// A blocking function that resolves one name.
type LookupFunction = fn(&str) -> io::Result<Vec<IpAddr>>;

/// The system's resolver: the hosts file, DNS, and other sources that the machine is configured with.
pub struct SystemResolver {
    look_up: LookupFunction,
    /// Keyed randomly, so that the group of a name cannot be predicted.
    hasher: RandomState,
    groups: Vec<Arc<Semaphore>>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::with(|name| Ok((name, 0).to_socket_addrs()?.map(|it| it.ip()).collect()))
    }
}

impl SystemResolver {
    /// Creates a resolver with another look-up function.
    pub fn with(look_up: LookupFunction) -> Self {
        let groups = (0..LOOKUP_GROUPS).map(|_| Arc::new(Semaphore::new(MAX_LOOKUPS_PER_GROUP))).collect();
        Self { look_up, hasher: RandomState::new(), groups }
    }

    /// Returns the group of a name. Names with the same last two labels probably have the same owner.
    fn group(&self, name: &str) -> Arc<Semaphore> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let owner = name.rmatch_indices('.').nth(1).map_or(name, |(dot, _)| &name[dot..]);
        let group = self.hasher.hash_one(owner.trim_start_matches('.')) % LOOKUP_GROUPS as u64;
        Arc::clone(&self.groups[group as usize])
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            let permit = self.group(name).acquire_owned().await.map_err(io::Error::other)?;
            let (look_up, name) = (self.look_up, name.to_owned());
            let lookup = tokio::task::spawn_blocking(move || {
                // If the request is cancelled, the thread is still busy.
                let _permit = permit;
                look_up(&name)
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// A resolver for tests, with fixed addresses.
#[cfg(feature = "fakes")]
#[derive(Default)]
pub struct FakeResolver(std::sync::Mutex<std::collections::HashMap<String, Vec<IpAddr>>>);

#[cfg(feature = "fakes")]
impl FakeResolver {
    /// Sets the addresses of a name.
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
