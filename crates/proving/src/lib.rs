//! Load, a bare upstream and faults.
