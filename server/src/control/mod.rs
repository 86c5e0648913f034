//! The control loop: policies, and the actions that they or people request.
//!
//! An action is requested in one transaction under the lock of its trace ([`requests`]). There the limits of the policy
//! decide whether it is queued or waits for a person ([`gates`]). [`crate::remediation`] executes queued actions.

pub mod diff;
mod endpoints;
pub mod gates;
pub mod policy_set;
pub mod requests;
pub mod triggers;
pub mod view;

use crate::feature::Feature;

/// The control loop.
pub const FEATURE: Feature = Feature {
    routes: endpoints::routes,
    jobs: |registry| {
        registry.register::<triggers::TriggerPolicies>();
        registry.register::<triggers::TriggerOnFailures>()
    },
    ..Feature::NONE
};
