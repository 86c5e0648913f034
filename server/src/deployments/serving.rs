//! Selects the version of a prompt that an application gets. Pure, except for the random selection without a subject.

use api::deployment::TestArm;
use sha2::{Digest, Sha256};

use super::cached::{LiveTest, PromptVersion, ServedVersions};
use crate::error::Result;

/// Bits of a fraction: as many as a float represents exactly.
const FRACTION_BITS: u32 = 53;

/// Returns the version for a subject, and the arm of the live test that runs. The same subject gets the same arm in every
/// process; without a subject, each call is random.
///
/// # Errors
///
/// Fails when the operating system gives no random numbers.
pub fn select<'a>(
    versions: &'a ServedVersions,
    subject: Option<&str>,
) -> Result<(&'a PromptVersion, Option<TestArm>)> {
    let Some(test) = &versions.test else { return Ok((&versions.shipped, None)) };
    let fraction = match subject {
        Some(subject) => fraction_of(test, subject),
        None => random_fraction()?,
    };
    Ok(match fraction < test.traffic_share {
        true => (&test.candidate, Some(TestArm::Candidate)),
        false => (&versions.shipped, Some(TestArm::Baseline)),
    })
}

/// Returns a number from 0 to 1 that follows from the test and the subject. Another test gives another number, so that a
/// subject is not always in the same arm.
fn fraction_of(test: &LiveTest, subject: &str) -> f64 {
    let mut digest = Sha256::new();
    digest.update(test.candidate.deployment_id.as_bytes());
    digest.update(subject.as_bytes());
    let digest: [u8; 32] = digest.finalize().into();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    to_fraction(u64::from_be_bytes(bytes))
}

fn random_fraction() -> Result<f64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|it| anyhow::anyhow!("no random numbers: {it}"))?;
    Ok(to_fraction(u64::from_be_bytes(bytes)))
}

fn to_fraction(bits: u64) -> f64 {
    (bits >> (u64::BITS - FRACTION_BITS)) as f64 / (1_u64 << FRACTION_BITS) as f64
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn version(id: u128) -> PromptVersion {
        let deployment_id = Uuid::from_u128(id);
        PromptVersion { deployment_id, version: 1, template: String::new(), model: None }
    }

    fn versions(test: u128, traffic_share: f64) -> ServedVersions {
        let test = LiveTest { candidate: version(test), traffic_share };
        ServedVersions { shipped: version(1), test: Some(test) }
    }

    fn is_candidate(versions: &ServedVersions, subject: Option<&str>) -> bool {
        select(versions, subject).unwrap().1 == Some(TestArm::Candidate)
    }

    #[test]
    fn share_of_subjects_gets_the_candidate() {
        for share in [0.1, 0.5, 0.9] {
            let versions = versions(2, share);
            let hits = (0..10_000).filter(|it| is_candidate(&versions, Some(&format!("user-{it}")))).count();
            // Five standard deviations of the binomial distribution.
            assert!((hits as f64 / 10_000.0 - share).abs() < 0.025, "{share}: {hits}");
        }
        let hits = (0..10_000).filter(|_| is_candidate(&versions(2, 0.5), None)).count();
        assert!((4_700..5_300).contains(&hits), "{hits}");
    }

    #[test]
    fn subject_keeps_its_arm_within_a_test_only() {
        let (first, second) = (versions(2, 0.5), versions(3, 0.5));
        let arms = |versions: &ServedVersions| -> Vec<bool> {
            (0..100).map(|it| is_candidate(versions, Some(&it.to_string()))).collect()
        };
        assert_eq!(arms(&first), arms(&first));
        assert_ne!(arms(&first), arms(&second));
        // The hash must not change between versions of this program: subjects would change their arm. The expected arms
        // were computed with Python's hashlib.
        let expected = [false, true, true, true, true, true, false, false];
        assert_eq!(arms(&first)[..8], expected);
    }

    #[test]
    fn shipped_version_is_served_without_a_test() {
        let versions = ServedVersions { test: None, ..versions(2, 0.5) };
        assert_eq!(select(&versions, Some("a")).unwrap(), (&versions.shipped, None));
    }
}
