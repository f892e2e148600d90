//! An engine without a GPU.
