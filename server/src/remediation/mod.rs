//! Executes control actions: repeats the request of a span with the tenant's own provider or callback, and stores the
//! output as a new span of the trace, which eval rules evaluate again.
//!
//! A call to a provider costs money, so no call is repeated without a record: the row of the action says that a call
//! begins before it begins. An action whose worker was lost during a call fails; its call is not repeated.

mod callback;
pub mod credential;
pub mod request;
mod run;
mod span;

use crate::{control::requests::RunAction, feature::Feature};

/// The execution of control actions.
pub const FEATURE: Feature = Feature { jobs: |registry| registry.register::<RunAction>(), ..Feature::NONE };
