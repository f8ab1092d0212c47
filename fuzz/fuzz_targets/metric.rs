//! No text makes reading a metric panic, and what reads prints to what reads as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rolltop::board::Metric;

fuzz_target!(|text: &str| {
    if let Ok(metric) = text.parse::<Metric>() {
        assert_eq!(metric.to_string().parse(), Ok(metric));
    }
});
