//! Asking a judge model and reading its answer: rubrics, the fence around what is judged, the
//! shape of the answer. The call itself is the server's.

mod rubric;

pub use rubric::{Level, Need, Prefers, Rubric};
