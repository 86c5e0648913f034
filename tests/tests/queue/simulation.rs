//! Random commands from a seed, compared with a model of the queue in memory: the results after each command,
//! and all rows at the end of a run. A failure names its seed.

use std::collections::BTreeMap;

use entities::job;
use queue::{JobResult, LEASE_MICROS, candidates, claim, finish, heartbeat, release_claim, release_expired};
use sea_orm::EntityTrait;
use tests::{TestApp, on_both_databases};
use uuid::Uuid;

use super::{POOL, enqueue, now, stored};

/// Number of runs on each database.
const RUN_COUNT: u64 = 200;
/// Number of commands in each run.
const COMMANDS_PER_RUN: usize = 40;
/// Maximum number of attempts of the job kind [`super::Work`].
const MAX_ATTEMPTS: i32 = 3;

on_both_databases! {
    async fn queue_behaves_like_its_model(app: TestApp) {
        for seed in 0..RUN_COUNT {
            run(app, seed).await;
        }
    }
}

/// The model of a job.
#[derive(Clone, Debug, PartialEq)]
struct ModelJob {
    tenant: Uuid,
    status: &'static str,
    run_at: i64,
    attempts: i32,
    lease_until: Option<i64>,
    fence: i64,
}

#[derive(Default)]
struct Model {
    jobs: BTreeMap<Uuid, ModelJob>,
    /// All claims, including lost ones: a worker may return at any time.
    claims: Vec<job::Model>,
}

async fn run(app: &TestApp, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    let mut model = Model::default();
    for step in 0..COMMANDS_PER_RUN {
        command(app, &mut model, &mut dice, &format!("seed {seed}, step {step}")).await;
    }
    let rows: BTreeMap<Uuid, ModelJob> =
        stored(app).await.into_iter().map(|it| (it.id, to_model_job(&it))).collect();
    assert_eq!(rows, model.jobs, "seed {seed}");
    let expired = model.jobs.values().filter(|it| it.status == "running").count();
    app.clock.advance(2 * LEASE_MICROS);
    assert_eq!(
        release_expired(&app.app.db, now(app)).await.unwrap(),
        u64::try_from(expired).unwrap(),
        "seed {seed}"
    );
    job::Entity::delete_many().exec(&app.app.db.write).await.unwrap();
}

async fn command(app: &TestApp, model: &mut Model, dice: &mut Dice, at: &str) {
    let (db, now) = (&app.app.db, now(app));
    let tenant = Uuid::from_u128(u128::from(1 + dice.below(3)));
    match dice.below(10) {
        0..=2 => {
            let run_at = now + dice.signed(2 * LEASE_MICROS);
            let id = enqueue(app, tenant, 0, run_at).await;
            model.jobs.insert(
                id,
                ModelJob { tenant, status: "ready", run_at, attempts: 0, lease_until: None, fence: 0 },
            );
        }
        3 | 4 => {
            let limit = 1 + dice.below(3);
            let mut claimed = claim(db, tenant, POOL, now, limit).await.unwrap();
            claimed.sort_by_key(|it| (it.run_at, it.id));
            let found: Vec<Uuid> = claimed.iter().map(|it| it.id).collect();
            assert_eq!(found, model.claim(tenant, now, usize::try_from(limit).unwrap()), "{at}: claim");
            model.claims.extend(claimed);
        }
        5 => {
            let mut due: Vec<Uuid> =
                model.jobs.values().filter(|it| it.is_due(now)).map(|it| it.tenant).collect();
            due.sort_unstable();
            due.dedup();
            due.sort_by_key(|it| *it <= tenant);
            assert_eq!(candidates(db, POOL, now, tenant, &[], 8).await.unwrap(), due, "{at}: candidates");
        }
        6 => app.clock.advance(dice.signed(LEASE_MICROS).abs()),
        7 => {
            let lost = model.release_expired(now);
            assert_eq!(release_expired(db, now).await.unwrap(), lost, "{at}: release");
        }
        8 => {
            let Some(claim) = model.draw(dice) else { return };
            let held = model.holds(&claim);
            if let Some(known) = held {
                known.lease_until = Some(now + LEASE_MICROS);
            }
            let held = model.holds(&claim).is_some();
            assert_eq!(heartbeat(db, &claim, now).await.unwrap(), held, "{at}: heartbeat");
        }
        _ => {
            let Some(claim) = model.draw(dice) else { return };
            let held = model.holds(&claim).is_some();
            let outcome = match dice.below(5) {
                0 => JobResult::Done,
                1 => JobResult::Snooze { until: now + dice.signed(LEASE_MICROS) },
                2 => JobResult::Discard { why: "drawn".to_owned() },
                3 => {
                    assert_eq!(release_claim(db, &claim, now).await.unwrap(), held, "{at}: release claim");
                    return model.finish(&claim, &JobResult::Snooze { until: now }, now);
                }
                _ => JobResult::Retry { why: "drawn".to_owned() },
            };
            assert_eq!(finish(db, &claim, &outcome, now).await.unwrap(), held, "{at}: {outcome:?}");
            model.finish(&claim, &outcome, now);
        }
    }
}

impl ModelJob {
    fn is_due(&self, now: i64) -> bool {
        self.status == "ready" && self.run_at <= now
    }
}

impl Model {
    fn claim(&mut self, tenant: Uuid, now: i64, limit: usize) -> Vec<Uuid> {
        let mut due: Vec<(i64, Uuid)> = self
            .jobs
            .iter()
            .filter(|(_, it)| it.tenant == tenant && it.is_due(now))
            .map(|(id, it)| (it.run_at, *id))
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        for (_, id) in &due {
            let job = self.jobs.get_mut(id).unwrap();
            (job.status, job.lease_until) = ("running", Some(now + LEASE_MICROS));
            (job.attempts, job.fence) = (job.attempts + 1, job.fence + 1);
        }
        due.into_iter().map(|it| it.1).collect()
    }

    fn release_expired(&mut self, now: i64) -> u64 {
        let lost = self.jobs.values_mut().filter(|it| it.lease_until.is_some_and(|until| until < now));
        let mut count = 0;
        for job in lost {
            count += 1;
            job.lease_until = None;
            job.status = if job.attempts >= MAX_ATTEMPTS { "dead" } else { "ready" };
        }
        count
    }

    fn finish(&mut self, claim: &job::Model, outcome: &JobResult, now: i64) {
        let Some(job) = self.holds(claim) else { return };
        job.lease_until = None;
        match outcome {
            JobResult::Done => {
                self.jobs.remove(&claim.id);
            }
            JobResult::Snooze { until } => {
                (job.status, job.attempts, job.run_at) = ("ready", job.attempts - 1, *until);
            }
            JobResult::Retry { .. } if job.attempts < MAX_ATTEMPTS => {
                // A second, doubled with each attempt.
                (job.status, job.run_at) = ("ready", now + (1_000_000 << (job.attempts - 1)));
            }
            JobResult::Retry { .. } | JobResult::Discard { .. } => job.status = "dead",
        }
    }

    /// Returns the job if this claim is the newest and has not ended.
    fn holds(&mut self, claim: &job::Model) -> Option<&mut ModelJob> {
        self.jobs.get_mut(&claim.id).filter(|it| it.status == "running" && it.fence == claim.fence)
    }

    fn draw(&self, dice: &mut Dice) -> Option<job::Model> {
        let count = u64::try_from(self.claims.len()).unwrap();
        (count > 0).then(|| self.claims[usize::try_from(dice.below(count)).unwrap()].clone())
    }
}

fn to_model_job(row: &job::Model) -> ModelJob {
    let status = ["ready", "running", "dead"].into_iter().find(|it| *it == row.status).unwrap();
    let job::Model { tenant_id, run_at, attempts, lease_until, fence, .. } = *row;
    ModelJob { tenant: tenant_id, status, run_at, attempts, lease_until, fence }
}

/// Pseudo-random numbers from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    /// Returns a number between minus `bound` and `bound`.
    fn signed(&mut self, bound: i64) -> i64 {
        i64::try_from(self.below(2 * bound.unsigned_abs())).unwrap() - bound
    }
}
