//! Keys, tokens and key sets as strangers send them.

mod foreign;
mod hostile;
mod keysets;
mod members;
mod signer;
