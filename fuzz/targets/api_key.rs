//! Keys: what is read has the one form there is, what is made is read, and one wrong character is noticed.

#![no_main]

use flyball_identity::{Credential, NewKey, PresentedKey};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(key) = PresentedKey::read(data) {
        assert_eq!(Credential::of(data), Credential::Key);
        assert_eq!(data.len(), 68);
        assert_eq!(key.id().as_bytes(), &data[7..17]);
        assert!(data[18..61].iter().chain(&data[62..]).all(u8::is_ascii_alphanumeric));
    }
    let Some((random, [at, other, ..])) = data.split_first_chunk::<{ NewKey::RANDOM_BYTES }>()
    else {
        return;
    };
    let made = NewKey::make(random);
    let read = PresentedKey::read(made.expose().as_bytes()).expect("what was made");
    assert_eq!((read.id(), read.hash()), (made.id(), made.hash()));
    let mut wrong = made.expose().as_bytes().to_vec();
    let at = usize::from(*at) % wrong.len();
    if wrong[at] != *other {
        wrong[at] = *other;
        assert!(PresentedKey::read(&wrong).is_err(), "a wrong byte at {at}");
    }
});
