//! Tests of the assignment of failures to clusters.

use super::{ClusterChange, ClusterSet, FailureText, MAX_CLUSTERS_PER_TYPE, StoredCluster};

/// A cluster set with IDs from 1.
#[derive(Default)]
struct Fixture {
    set: ClusterSet<u32>,
    last_id: u32,
}

impl Fixture {
    fn assign(&mut self, message: &str) -> (u32, ClusterChange) {
        self.assign_to("other", "chat", message)
    }

    fn assign_to(&mut self, failure_type: &str, span_name: &str, message: &str) -> (u32, ClusterChange) {
        let next = self.last_id + 1;
        let assignment = self.set.assign(&FailureText { failure_type, span_name, message }, || next);
        self.last_id = self.last_id.max(assignment.cluster);
        (assignment.cluster, assignment.change)
    }

    fn text(&self, id: u32) -> &str {
        self.set.template(id).map_or("", |it| it.text())
    }

    fn reload(&mut self) {
        let mut rows: Vec<StoredCluster<u32>> = self.set.ids().filter_map(|it| self.set.stored(it)).collect();
        rows.reverse();
        self.set = ClusterSet::load(rows);
    }
}

#[test]
fn messages_that_differ_in_values_share_a_cluster() {
    let mut fixture = Fixture::default();
    assert_eq!(fixture.assign("The model `gpt-4o` does not exist"), (1, ClusterChange::Created));
    assert_eq!(fixture.assign("The model `gpt-4o` does not exist"), (1, ClusterChange::Unchanged));
    assert_eq!(fixture.assign("The model `o3-mini` does not exist"), (1, ClusterChange::Generalized));
    assert_eq!(fixture.text(1), "The model `<*>` does not exist");
    assert_eq!(fixture.assign("The model `o1` does not exist"), (1, ClusterChange::Unchanged));
}

#[test]
fn word_of_prose_becomes_variable_with_evidence() {
    let mut fixture = Fixture::default();
    assert_eq!(fixture.assign("Collection orders does not exist in store").0, 1);
    assert_eq!(fixture.assign("Collection customers does not exist in store").0, 2);
    assert_eq!(
        fixture.assign("Collection invoices does not exist in store"),
        (1, ClusterChange::Generalized)
    );
    assert_eq!(fixture.text(1), "Collection <*> does not exist in store");
    // Failures of a message that has a cluster stay together.
    assert_eq!(fixture.assign("Collection customers does not exist in store").0, 2);
    assert_eq!(fixture.assign("Collection parts does not exist in store").0, 1);
}

#[test]
fn statuses_never_become_variable() {
    let mut fixture = Fixture::default();
    for (status, id) in [("401", 1), ("404", 2), ("500", 3), ("502", 4), ("401", 1)] {
        assert_eq!(
            fixture.assign(&format!("Request to the provider failed with status code {status}")).0,
            id
        );
    }
}

#[test]
fn free_texts_after_a_colon_share_a_cluster() {
    let mut fixture = Fixture::default();
    let texts = [
        "sunny day",
        "flights booked",
        "unable",
        "my opinion differs",
        "blue cats",
        "what about trains",
        "seven apples fell",
    ];
    let ids: Vec<u32> =
        texts.iter().map(|it| fixture.assign(&format!("The planner replied: {it}")).0).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 1, 1]);
    assert_eq!(fixture.text(1), "The planner replied: <*>…");
}

#[test]
fn clusters_are_separate_by_type_and_span() {
    let mut fixture = Fixture::default();
    assert_eq!(fixture.assign_to("timeout", "chat", "Request timed out.").0, 1);
    assert_eq!(fixture.assign_to("other", "chat", "Request timed out.").0, 2);
    assert_eq!(fixture.assign_to("timeout", "search", "Request timed out.").0, 3);
    assert_eq!(fixture.assign_to("timeout", "step 1", "Request timed out.").0, 4);
    assert_eq!(fixture.assign_to("timeout", "step 2", "Request timed out.").0, 4);
    assert_eq!(fixture.assign_to("timeout", "", "Request timed out.").0, 5);
}

#[test]
fn messages_without_words_have_clusters() {
    let mut fixture = Fixture::default();
    assert_eq!(fixture.assign("").0, 1);
    assert_eq!(fixture.assign("").0, 1);
    assert_eq!(fixture.assign("12345").0, 2);
    assert_eq!(fixture.assign("67").0, 2);
    assert_eq!(fixture.assign("???").0, 3);
    assert_eq!(fixture.assign("???").0, 3);
}

#[test]
fn loaded_set_continues_like_the_stored_one() {
    let mut fixture = Fixture::default();
    fixture.assign("Tool a_b failed: the disk is full");
    fixture.assign("Tool c_d failed: the disk is full");
    fixture.assign("");
    let before: Vec<_> = fixture.set.ids().map(|it| fixture.set.stored(it)).collect();
    fixture.reload();
    assert_eq!(fixture.set.ids().map(|it| fixture.set.stored(it)).collect::<Vec<_>>(), before);
    assert_eq!(fixture.assign("Tool e_f failed: the disk is full"), (1, ClusterChange::Unchanged));
    assert_eq!(fixture.assign("").1, ClusterChange::Unchanged);
}

#[test]
fn clusters_of_other_version_get_no_failures() {
    let row = StoredCluster {
        id: 7,
        failure_type: "other".to_owned(),
        span_name: "chat".to_owned(),
        fingerprint: "0:the disk is full".to_owned(),
        count: 3,
    };
    let mut fixture = Fixture { set: ClusterSet::load(vec![row]), last_id: 7 };
    assert_eq!(fixture.assign("the disk is full"), (8, ClusterChange::Created));
}

#[test]
fn failures_beyond_the_limit_join_the_overflow_cluster() {
    let mut fixture = Fixture::default();
    let word = |mut number: usize| {
        let mut word = String::new();
        while number > 0 {
            word.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        word + "zz"
    };
    for it in 0..MAX_CLUSTERS_PER_TYPE {
        let text = format!("{} {} {}", word(3 * it + 1), word(3 * it + 2), word(3 * it + 3));
        assert_eq!(fixture.assign(&text).1, ClusterChange::Created, "{text}");
    }
    let (overflow, change) = fixture.assign("a wholly different sentence about penguins");
    assert_eq!(change, ClusterChange::Created);
    assert_eq!(fixture.text(overflow), "<*>");
    assert_eq!(fixture.assign("another remark regarding volcanoes").0, overflow);
    fixture.reload();
    assert_eq!(fixture.assign("yet more prose mentioning teapots"), (overflow, ClusterChange::Unchanged));
    // A known message still finds its cluster, and another type has clusters of its own.
    assert_eq!(fixture.assign(&format!("{} {} {}", word(1), word(2), word(3))).0, 1);
    assert_eq!(fixture.assign_to("timeout", "chat", "a wholly different sentence").1, ClusterChange::Created);
}
