//! The rules of the project, and the details of the selected one.

use std::collections::HashMap;

use api::{
    Timestamp,
    eval::{Evaluation, EvaluationList},
    eval_rule::{EvalRule, RuleDecisionList, RuleTest},
};
use uuid::Uuid;

use crate::{net::NetError, shell::Rows};

/// Hours for which the pass rate of a rule is shown.
pub const SAMPLE_HOURS: usize = 24;
/// Microseconds of an hour.
const HOUR: i64 = 3_600_000_000;

/// The content of the pane of a rule.
#[derive(Debug, Default)]
pub enum RulePane {
    /// The settings of the rule.
    #[default]
    Facts,
    /// The decisions of the rule.
    Decisions {
        /// The id of the rule.
        rule: Uuid,
        /// The trace; none means the newest decisions.
        trace: Option<Uuid>,
        /// The response or the error; none while the request is open.
        answer: Option<Result<RuleDecisionList, NetError>>,
    },
    /// The result of a test of the rule.
    Tested {
        /// The id of the rule.
        rule: Uuid,
        /// The result.
        result: Box<RuleTest>,
    },
}

/// The share of a rule's recent evaluations that passed, by hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSample {
    /// The numbers of passed and of labelled evaluations by hour, the oldest hour first.
    pub hours: [(u32, u32); SAMPLE_HOURS],
    /// Whether there are more than one page; the newest are counted.
    pub more: bool,
    /// The number of oldest hours that the page does not reach.
    pub unknown: usize,
    /// Time at which the page arrived.
    pub at: Timestamp,
}

impl RuleSample {
    /// Counts a page of a rule's evaluations of the last day. Evaluations with a label other than
    /// `pass`, `warn` and `fail` neither pass nor fail, so they are left out.
    pub fn of(page: &EvaluationList, now: Timestamp) -> Self {
        let mut hours = [(0, 0); SAMPLE_HOURS];
        let hour_of = |it: &Evaluation| {
            let age = (now.micros() - it.created_at.micros()).max(0) / HOUR;
            usize::try_from(age).ok().and_then(|age| (SAMPLE_HOURS - 1).checked_sub(age))
        };
        let oldest = page.evaluations.iter().map(|it| hour_of(it).unwrap_or(0)).min();
        for it in &page.evaluations {
            let slot = hour_of(it).and_then(|hour| hours.get_mut(hour));
            if let (Some((passed, all)), Some("pass" | "warn" | "fail")) = (slot, it.label.as_deref()) {
                *passed += u32::from(it.label.as_deref() == Some("pass"));
                *all += 1;
            }
        }
        let unknown = oldest.filter(|_| page.has_more).unwrap_or(0);
        Self { hours, more: page.has_more, unknown, at: now }
    }

    /// Returns the number of labelled evaluations.
    pub fn all(&self) -> u32 {
        self.hours.iter().map(|(_, all)| all).sum()
    }

    /// Returns the share that passed, 0 to 1.
    pub fn rate(&self) -> Option<f64> {
        let passed: u32 = self.hours.iter().map(|(passed, _)| passed).sum();
        (self.all() > 0).then(|| f64::from(passed) / f64::from(self.all()))
    }

    /// Returns the share that passed by hour.
    pub fn rates(&self) -> [Option<f64>; SAMPLE_HOURS] {
        self.hours.map(|(passed, all)| (all > 0).then(|| f64::from(passed) / f64::from(all)))
    }
}

/// The rules.
#[derive(Debug, Default)]
pub struct Rules {
    /// The rules, newest first.
    pub list: Rows<EvalRule>,
    /// The rule that the cursor moves to as soon as it is loaded.
    pub wanted: Option<Uuid>,
    /// Time at which to request the rules again.
    pub next: Option<Timestamp>,
    /// The recent results of the rules, by id.
    pub samples: HashMap<Uuid, RuleSample>,
    /// The content of the pane.
    pub side: RulePane,
    /// The first visible line of the pane.
    pub top: usize,
}

impl Rules {
    /// Returns the rule under the cursor.
    pub fn current(&self) -> Option<&EvalRule> {
        self.list.items.get(self.list.selected)
    }

    /// Returns a rule by its id.
    pub fn get(&self, id: Uuid) -> Option<&EvalRule> {
        self.list.items.iter().find(|rule| rule.id == id)
    }

    /// Stores a fresh list; the cursor stays on its rule.
    pub fn fill(&mut self, rules: Vec<EvalRule>) {
        let position = |id: Uuid| rules.iter().position(|rule| rule.id == id);
        let made = self.wanted.and_then(position);
        if made.is_some() {
            self.wanted = None;
        }
        let kept = made.or_else(|| self.current().and_then(|rule| position(rule.id)));
        let last = rules.len().saturating_sub(1);
        self.list = Rows {
            selected: kept.unwrap_or_else(|| self.list.selected.min(last)),
            items: rules,
            loaded: true,
            error: None,
        };
    }

    /// Returns whether the pane shows a test result or decisions.
    pub fn has_result(&self) -> bool {
        !matches!(self.side(), RulePane::Facts)
    }

    /// Returns the content of the pane, if it belongs to the rule under the cursor.
    pub fn side(&self) -> &RulePane {
        let about = match &self.side {
            RulePane::Facts => None,
            RulePane::Decisions { rule, .. } | RulePane::Tested { rule, .. } => Some(*rule),
        };
        if about.is_some() && about == self.current().map(|rule| rule.id) {
            &self.side
        } else {
            &RulePane::Facts
        }
    }
}
