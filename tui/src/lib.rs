//! `loupe console`: the terminal console.
#[cfg(test)]
mod fixture;
pub mod keymap;
pub mod list;
pub mod msg;
pub mod format;
pub mod text;
pub mod theme;
pub mod tree;
