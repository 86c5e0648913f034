//! Runs evaluations that the caller can interrupt. The budget of their loops is in `crate::budget`.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
};

pub use crate::budget::TaskInterrupted;
use crate::{budget::replace_end_condition, pattern::forget_caches};

/// Runs `work`, which ends early once `must_end` returns true.
///
/// # Errors
/// Fails with [`TaskInterrupted`] when the work ended early.
pub fn interruptible<T>(
    must_end: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> T,
) -> Result<T, TaskInterrupted> {
    let outer = replace_end_condition(Some(Rc::new(must_end)));
    // Unwinding drops unfinished work, and evaluators have no state that it could corrupt.
    let done = catch_unwind(AssertUnwindSafe(work));
    replace_end_condition(outer);
    forget_caches();
    done.map_err(|thrown: Box<dyn Any + Send>| match thrown.downcast::<TaskInterrupted>() {
        Ok(interrupted) => *interrupted,
        Err(other) => resume_unwind(other),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::budget::{POLL_UNITS, spend};

    #[test]
    fn work_ends_when_its_caller_interrupts_it() {
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
