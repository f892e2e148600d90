//! The governor with its tuner in fluid worlds: what it chooses, how seldom, and who has the last word.

mod chosen;
