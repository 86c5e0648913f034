//! The caller and what a route asks of one.

use std::sync::Arc;

use api::{ErrorCode, Plan, Role, Scope};
use uuid::Uuid;

use crate::error::Problem;

/// Whoever sent a request, known by a valid token.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The tenant that the token belongs to.
    pub tenant_id: Uuid,
    /// What the tenant pays for.
    pub plan: Plan,
    /// The session's role, or the role of the key's maker.
    pub role: Role,
    /// Which kind of token.
    pub credential: Credential,
    /// The request's id.
    pub request_id: Arc<str>,
}

/// Which kind of token a caller has.
#[derive(Clone, Debug)]
pub enum Credential {
    /// An API key.
    Key {
        /// The key's id.
        id: Uuid,
        /// The project that its traces go to.
        project_id: Uuid,
        /// Empty means full access.
        scopes: Arc<[Scope]>,
    },
    /// A dashboard session.
    Session {
        /// The token's subject.
        subject: Arc<str>,
        /// Microseconds.
        expires_at: i64,
    },
}

/// Which API keys a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// None: a session is needed.
    Refused,
    /// Keys with full access.
    Full,
    /// Keys with full access or the `query` scope.
    Query,
    /// Every key, whatever its scopes.
    Any,
}

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No token is looked at.
    Open,
    /// A token with these rights.
    Token {
        /// The lowest role.
        role: Role,
        /// Which keys.
        keys: Keys,
        /// The lowest plan.
        plan: Plan,
    },
}

impl Access {
    /// At least a viewer; any plan; no keys until [`Self::keys`] says otherwise.
    pub const fn viewer() -> Self {
        Self::role(Role::Viewer)
    }

    /// At least a member.
    pub const fn member() -> Self {
        Self::role(Role::Member)
    }

    /// An owner.
    pub const fn owner() -> Self {
        Self::role(Role::Owner)
    }

    const fn role(role: Role) -> Self {
        Self::Token { role, keys: Keys::Refused, plan: Plan::Starter }
    }

    /// The same, also for these keys.
    pub const fn keys(self, keys: Keys) -> Self {
        match self {
            Self::Open => Self::Open,
            Self::Token { role, plan, .. } => Self::Token { role, keys, plan },
        }
    }

    /// The same, from this plan on.
    pub const fn plan(self, plan: Plan) -> Self {
        match self {
            Self::Open => Self::Open,
            Self::Token { role, keys, .. } => Self::Token { role, keys, plan },
        }
    }

    /// Lets the caller in or says why not. The order of the checks is part of the contract:
    /// scope, key kind, plan, role.
    ///
    /// # Errors
    /// The [`Problem`] that the caller is told.
    pub fn check(self, caller: &Caller) -> Result<(), Problem> {
        let Self::Token { role, keys, plan } = self else { return Ok(()) };
        if let Credential::Key { scopes, .. } = &caller.credential {
            // A restricted key reaches what its scopes name and nothing else, also where
            // another key would be told to bring a session.
            if !scopes.is_empty() && !matches!(keys, Keys::Query | Keys::Any) {
                return Err(Problem::new(
                    ErrorCode::ScopeForbidden,
                    "the key's scopes do not allow this call",
                ));
            }
            if keys == Keys::Refused {
                return Err(Problem::new(
                    ErrorCode::SessionRequired,
                    "this call needs a dashboard session; API keys do not reach it",
                ));
            }
        }
        if caller.plan < plan {
            return Err(Problem::plan_too_low(plan, caller.plan));
        }
        if caller.role < role {
            return Err(Problem::new(
                ErrorCode::ForbiddenRole,
                format!("this needs the role {role}; the caller is {}", caller.role),
            ));
        }
        Ok(())
    }
}
