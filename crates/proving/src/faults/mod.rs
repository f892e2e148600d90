//! not yet
