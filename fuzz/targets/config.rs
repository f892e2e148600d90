//! Whatever stands in a gateway's file is taken or refused, and nothing panics.

#![no_main]

use flyball_fuzz::settings::GatewaySettingsFile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match GatewaySettingsFile::parse(text) {
        Ok(settings) => drop(settings.warnings()),
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            for problem in problems {
                assert!(!problem.to_string().is_empty());
            }
        }
    }
});
