//! Widgets that the screens are drawn with.

pub mod boxed;
pub mod json;
pub mod table;
pub mod waterfall;
