//! Interrupts long evaluations: loops over texts check from time to time whether they may continue.
//!
//! This crate reads no clock. The caller passes a function that returns whether the work has to end, for
//! example because its time is used up or the server stops. Loops over texts call `spend`, which calls that
//! function every `POLL_UNITS` units. Interrupted work ends by unwinding, because some of it runs inside
//! libraries that cannot be stopped; no panic is reported.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
};

/// Units of work between two calls of the caller's function. A unit takes about one to ten nanoseconds.
const POLL_UNITS: u64 = 100_000;

/// The error when the caller interrupted the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInterrupted;

/// Returns whether the work has to end.
type EndCondition = Rc<dyn Fn() -> bool>;

thread_local! {
    static MUST_END: RefCell<Option<EndCondition>> = const { RefCell::new(None) };
    static SPENT_UNITS: Cell<u64> = const { Cell::new(0) };
}

/// Runs `work`, which ends early once `must_end` returns true.
///
/// # Errors
/// [`TaskInterrupted`] when the work ended early.
pub fn interruptible<T>(
    must_end: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> T,
) -> Result<T, TaskInterrupted> {
    let outer = MUST_END.replace(Some(Rc::new(must_end)));
    SPENT_UNITS.set(0);
    // Unwinding drops unfinished work, and evaluators have no state that it could corrupt.
    let done = catch_unwind(AssertUnwindSafe(work));
    MUST_END.set(outer);
    crate::pattern::forget_caches();
    done.map_err(|thrown: Box<dyn Any + Send>| match thrown.downcast::<TaskInterrupted>() {
        Ok(interrupted) => *interrupted,
        Err(other) => resume_unwind(other),
    })
}

/// Records upcoming work, and unwinds when the caller wants it to end. Outside of [`interruptible`] this
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_its_caller_says_so() {
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let endless = interruptible(
            move || {
                count.set(count.get() + 1);
                count.get() == 3
            },
            || -> () {
                loop {
                    spend(POLL_UNITS / 2);
                }
            },
        );
        assert_eq!((endless, asked.get()), (Err(TaskInterrupted), 3));
        // The next work on this thread is not affected.
        assert_eq!(
            interruptible(
                || false,
                || {
                    spend(2 * POLL_UNITS);
                    7
                }
            ),
            Ok(7)
        );
        spend(2 * POLL_UNITS);
    }

    #[test]
    #[should_panic(expected = "a fault")]
    fn panic_of_work_passes_through() {
        _ = interruptible(|| false, || -> () { panic!("a fault") });
    }
}
