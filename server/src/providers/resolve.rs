//! From a name to addresses.

use std::{
    hash::{BuildHasher, RandomState},
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

/// Lanes of look-ups. A look-up blocks a thread for as long as somebody's slow name server likes;
/// whoever owns that name shall hold up no more than one lane with it, and all lanes together no
/// more than half of the threads that there are.
const LANES: usize = 32;

/// Look-ups at the same time in a lane.
const LANE_WIDTH: usize = 8;

/// What looks up one name, blocking.
type Ask = fn(&str) -> io::Result<Vec<IpAddr>>;

/// The system's resolver: the hosts file, DNS, whatever the machine is set up with.
pub struct SystemResolver {
    ask: Ask,
    /// Keyed at random, so that nobody can choose whom to meet in a lane.
    hasher: RandomState,
    lanes: Vec<Arc<Semaphore>>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::asking(|name| Ok((name, 0).to_socket_addrs()?.map(|it| it.ip()).collect()))
    }
}

impl SystemResolver {
    /// With another way to look up a name.
    pub fn asking(ask: Ask) -> Self {
        let lanes = (0..LANES).map(|_| Arc::new(Semaphore::new(LANE_WIDTH))).collect();
        Self { ask, hasher: RandomState::new(), lanes }
    }

    /// The lane of a name. Names with the same two last labels are likely of one owner.
    fn lane(&self, name: &str) -> Arc<Semaphore> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let owner = name.rmatch_indices('.').nth(1).map_or(name, |(dot, _)| &name[dot..]);
        let lane = self.hasher.hash_one(owner.trim_start_matches('.')) % LANES as u64;
        Arc::clone(&self.lanes[lane as usize])
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            let permit = self.lane(name).acquire_owned().await.map_err(io::Error::other)?;
            let (ask, name) = (self.ask, name.to_owned());
            let lookup = tokio::task::spawn_blocking(move || {
                // Whoever asked may have given up; the thread is busy all the same.
                let _permit = permit;
                ask(&name)
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
