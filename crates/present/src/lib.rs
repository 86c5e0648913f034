//! Presentation shared by the command line and the console: formats, text width, diffs of texts, tones, glyphs, charts,
//! trees, waterfalls and rows of CSV.
//!
//! Everything here is plain data: functions of values to text or numbers. Nothing reads the environment, talks to a
//! server or draws to a terminal.

pub mod chart;
pub mod csv;
pub mod diff;
pub mod evaluation;
pub mod format;
pub mod glyphs;
pub mod share;
pub mod text;
pub mod tone;
pub mod tree;
pub mod waterfall;

pub use glyphs::Glyphs;
pub use tone::Tone;
