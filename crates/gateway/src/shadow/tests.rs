//! What is told of whom.
