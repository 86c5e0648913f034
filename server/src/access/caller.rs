//! Callers and access requirements.

use std::sync::Arc;

use api::{ErrorCode, Plan, Role, Scope};
use uuid::Uuid;

use crate::error::Problem;

/// The authenticated sender of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The tenant that the token belongs to.
    pub tenant_id: Uuid,
    /// The tenant's plan.
    pub plan: Plan,
    /// The session's role, or the role of the user who created the key.
    pub role: Role,
    /// The kind of token.
    pub credential: Credential,
    /// The request ID.
    pub request_id: Arc<str>,
}

/// The kind of a caller's token.
#[derive(Clone, Debug)]
pub enum Credential {
    /// An API key.
    Key {
        /// The key's ID.
        id: Uuid,
        /// The project that receives the traces sent with it.
        project_id: Uuid,
        /// Restrictions; empty means full access.
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

/// Which API keys a route accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// None: a session is required.
    Refused,
    /// Keys with full access.
    Full,
    /// Keys with full access or the `query` scope.
    Query,
    /// Every key, whatever its scopes.
    Any,
}

/// The access requirements of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Public: no token is needed.
    Open,
    /// A token that meets these requirements.
    Token {
        /// The lowest role.
        role: Role,
        /// The accepted keys.
        keys: Keys,
        /// The lowest plan.
        plan: Plan,
    },
}

impl Access {
    /// Requires the role viewer, on any plan; accepts no keys unless [`Self::keys`] is called.
    pub const fn viewer() -> Self {
        Self::role(Role::Viewer)
    }

    /// Requires the role member.
    pub const fn member() -> Self {
        Self::role(Role::Member)
    }

    /// Requires the role owner.
    pub const fn owner() -> Self {
        Self::role(Role::Owner)
    }

    const fn role(role: Role) -> Self {
        Self::Token { role, keys: Keys::Refused, plan: Plan::Starter }
    }

    /// Also accepts these keys.
    pub const fn keys(self, keys: Keys) -> Self {
        match self {
            Self::Open => Self::Open,
            Self::Token { role, plan, .. } => Self::Token { role, keys, plan },
        }
    }

    /// Requires this plan or above.
    pub const fn plan(self, plan: Plan) -> Self {
        match self {
            Self::Open => Self::Open,
            Self::Token { role, keys, .. } => Self::Token { role, keys, plan },
        }
    }

    /// Checks the caller against the requirements. The order is part of the contract: scope, key kind,
    /// plan, role.
    ///
    /// # Errors
    ///
    /// Returns the [`Problem`] for the client.
    pub fn check(self, caller: &Caller) -> Result<(), Problem> {
        let Self::Token { role, keys, plan } = self else { return Ok(()) };
        if let Credential::Key { scopes, .. } = &caller.credential {
            // A restricted key gets `scope_forbidden` also where another key would get
            // `session_required`.
            if !scopes.is_empty() && !matches!(keys, Keys::Query | Keys::Any) {
                return Err(Problem::new(
                    ErrorCode::ScopeForbidden,
                    "the key's scopes do not allow this call",
                ));
            }
            if keys == Keys::Refused {
                return Err(Problem::new(
                    ErrorCode::SessionRequired,
                    "this endpoint requires a dashboard session; API keys are not accepted",
                ));
            }
        }
        if caller.plan < plan {
            return Err(Problem::plan_too_low(plan, caller.plan));
        }
        if caller.role < role {
            return Err(Problem::new(
                ErrorCode::ForbiddenRole,
                format!("this requires the role {role}; the caller is {}", caller.role),
            ));
        }
        Ok(())
    }
}
