//! The seed of tests that draw what they do.

/// Returns the seed of this run: `ROLLTOP_TEST_SEED`, which `.ci/run` sets, or a random one. Prints it, so that the
/// output of a test that fails or hangs says how to draw the same again.
pub fn seed() -> u64 {
    let set = std::env::var("ROLLTOP_TEST_SEED").ok();
    // A test in a browser reads the same variable as a number of JavaScript.
    let seed =
        set.map_or_else(|| u64::from(rand::random::<u32>()), |set| set.parse().expect("ROLLTOP_TEST_SEED is a number"));
    println!("ROLLTOP_TEST_SEED={seed} draws the same again");
    seed
}
