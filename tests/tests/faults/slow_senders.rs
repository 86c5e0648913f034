//! Request bodies that stop halfway.
