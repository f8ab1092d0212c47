//! No text makes reading a rule panic, and what reads prints to what reads as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rolltop::board::Rule;

fuzz_target!(|text: &str| {
    if let Ok(rule) = text.parse::<Rule>() {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
});
