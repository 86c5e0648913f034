//! The owner of an address, which decides how the address is checked.

/// The party that set an address; it decides which addresses are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressOwner {
    /// A tenant: the address must be public and https, or on the allow list. Proxies are not used.
    Tenant,
    /// The operator of this server: any address, through the proxies of the environment.
    Operator,
}
