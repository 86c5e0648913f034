//! The tab History and its older pages.

use super::*;

#[test]
fn older_rows_of_the_history_load_near_its_end() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "H");
    let [deployments, actions] = &requests(&effects)[..] else { panic!("{effects:?}") };
    let page =
        ControlActionList { actions: past_actions(), has_more: true, next_cursor: Some("older".into()) };
    update(&mut state, Msg::Reply(deployments.id, Ok(response_to(deployments))));
    update(&mut state, Msg::Reply(actions.id, Ok(Response::new(page))));
    let statuses = |state: &App| state.screens.approvals.rows().len();
    assert_eq!(statuses(&state), 2, "deployments older than the last loaded action wait for the next page");
    let effects = only(&press(&mut state, "j"), "/v1/control/actions");
    assert_eq!(only_request(&effects).param("cursor"), Some("older"));
    assert!(only(&press(&mut state, "k"), "/v1/control/actions").is_empty(), "the page is under way");
    let last = ControlActionList {
        actions: vec![action(205, ActionStatus::Rejected, 5_000)],
        has_more: false,
        next_cursor: None,
    };
    reply(&mut state, &effects, Ok(Response::new(last)));
    assert_eq!(statuses(&state), 5);
}

#[test]
fn history_loads_older_rows_until_one_is_decided() {
    let page = |n: u128, status, minutes, next: Option<&str>| ControlActionList {
        actions: vec![action(n, status, minutes)],
        has_more: next.is_some(),
        next_cursor: next.map(str::to_owned),
    };
    let waiting = ActionStatus::PendingApproval;
    let mut state = deciding((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "H");
    let [deployments, actions] = &requests(&effects)[..] else { panic!("{effects:?}") };
    update(&mut state, Msg::Reply(deployments.id, Ok(response_to(deployments))));
    let first = page(201, waiting, 9, Some("older"));
    let effects = update(&mut state, Msg::Reply(actions.id, Ok(Response::new(first))));
    let effects = only(&effects, "/v1/control/actions");
    assert_eq!(only_request(&effects).param("cursor"), Some("older"));
    assert!(screen(&state).contains("loading"), "{}", screen(&state));
    let second = page(206, waiting, 40, Some("oldest"));
    let effects = reply(&mut state, &effects, Ok(Response::new(second)));
    let effects = only(&effects, "/v1/control/actions");
    assert_eq!(only_request(&effects).param("cursor"), Some("oldest"));
    let last = page(207, ActionStatus::Rejected, 50, Some("further"));
    let effects = reply(&mut state, &effects, Ok(Response::new(last)));
    assert!(only(&effects, "/v1/control/actions").is_empty(), "a row is shown");
    assert_eq!(current_id(&state), id(207));
    // A fresh first page keeps the rows.
    let effects = only(&tick(&mut state, 10), "/v1/control/actions");
    let first = page(201, waiting, 9, Some("older"));
    reply(&mut state, &effects[1..], Ok(Response::new(first)));
    assert_eq!((effects.len(), current_id(&state)), (2, id(207)));
}

#[test]
fn history_without_a_decision_says_so() {
    let mut state = deciding((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "H");
    let [deployments, actions] = &requests(&effects)[..] else { panic!("{effects:?}") };
    let none = PromptDeploymentList { deployments: Vec::new(), has_more: false, next_cursor: None };
    update(&mut state, Msg::Reply(deployments.id, Ok(Response::new(none))));
    let waiting = ControlActionList { actions: pending_actions(), has_more: false, next_cursor: None };
    update(&mut state, Msg::Reply(actions.id, Ok(Response::new(waiting))));
    assert!(screen(&state).contains("All loaded deployments and actions wait"), "{}", screen(&state));
}
