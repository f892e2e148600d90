//! The brain: how many replicas of which variant each model should have, and why.
//!
//! A decision is a plain function of a snapshot, a policy, the previous decision and what was
//! learnt. The operator calls it with a real cluster's snapshot and the simulator with a virtual
//! one's; nothing here can tell which.
//!
//! It does no I/O and knows no clock, no randomness and no serialised form.
