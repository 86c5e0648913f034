//! Interrupts long evaluations: loops over texts check from time to time whether they may continue.
//!
//! This crate reads no clock. The caller passes a function that returns whether the work has to end, for
//! example because its time is used up or the server stops. Loops over texts call `spend`, which calls that
//! function every `POLL_UNITS` units. Interrupted work ends by unwinding, because some of it runs inside
//! libraries that cannot be stopped; no panic is reported.

use std::{
    cell::{Cell, RefCell},
    panic::resume_unwind,
    rc::Rc,
};

/// Units of work between two calls of the caller's function. A unit takes about one to ten nanoseconds.
pub(crate) const POLL_UNITS: u64 = 100_000;

/// The error when the caller interrupted the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInterrupted;

/// Returns whether the work has to end.
pub(crate) type EndCondition = Rc<dyn Fn() -> bool>;

thread_local! {
    static MUST_END: RefCell<Option<EndCondition>> = const { RefCell::new(None) };
    static SPENT_UNITS: Cell<u64> = const { Cell::new(0) };
}

/// Replaces the function that decides whether work on this thread has to end. Returns the previous one.
pub(crate) fn replace_end_condition(must_end: Option<EndCondition>) -> Option<EndCondition> {
    let previous = MUST_END.replace(must_end);
    SPENT_UNITS.set(0);
    previous
}

/// Records upcoming work, and unwinds when the caller wants it to end. Outside of [`crate::interruption::interruptible`] this
/// does nothing.
#[inline]
pub(crate) fn spend(units: u64) {
    let spent = SPENT_UNITS.get().saturating_add(units);
    if spent < POLL_UNITS {
        SPENT_UNITS.set(spent);
    } else {
        SPENT_UNITS.set(0);
        poll();
    }
}

/// Calls the caller's function now; used between two steps that can each take long.
#[cold]
pub(crate) fn poll() {
    let must_end = MUST_END.with_borrow(Clone::clone);
    if must_end.is_some_and(|it| it()) {
        resume_unwind(Box::new(TaskInterrupted));
    }
}
