//! Whatever stands in a gateway's file is taken or refused, and nothing panics.

#![no_main]

use flyball_fuzz::settings::Settings;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = toml::from_str::<Settings>(text);
});
