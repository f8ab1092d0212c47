use super::*;

#[test]
fn limits() {
    let define = |metric: &str, slot: &str| Definition::new(metric.parse().unwrap(), slot.parse().unwrap()).layout();
    assert_eq!(define("COUNT(2000s, a, b)", "1s").unwrap().slots, 2_000);
    assert!(matches!(define("COUNT(2001s, a, b)", "1s"), Err(DefinitionError::TooManySlots { slots: 2_001, .. })));
    assert_eq!(define("COUNT(90m, a, b)", "1h").unwrap_err().field(), "metric");
    assert_eq!(define("COUNT(90m, a, b)", "7m").unwrap_err().field(), "slot");
    assert_eq!(define("COUNT(1d, a, b)", "1d").unwrap().slots, 1);
}

#[test]
fn numbers_have_limits() {
    let distinct = Definition::new("COUNT_DISTINCT(1h, a, b, c)".parse().unwrap(), "1m".parse().unwrap());
    let mean = Definition::new("AVG(1h, a, v, b)".parse().unwrap(), "1m".parse().unwrap());
    for (definition, key) in [
        (Definition { max_values: Some(0), ..distinct }, "max_values"),
        (Definition { min_samples: 0, ..mean }, "min_samples"),
    ] {
        let error = definition.layout().unwrap_err();
        assert_eq!((error.field(), error.to_string().as_str()), (key, "0 is not a whole number from 1 to 4294967295"));
    }
}

#[test]
fn the_store_chooses_the_shards_of_boards_with_many_keys() {
    let of = |metric: &str| Definition::new(metric.parse().unwrap(), "1m".parse().unwrap());
    let many = of("COUNT(1h, a, b BY c)");
    let chosen = many.with_default_shards(Some(64));
    assert_eq!((chosen.shards, many.with_default_shards(None).shards), (Some(64), None));
    assert_eq!(chosen.differences(&many), Vec::<&str>::new());
    assert_eq!(many.differences(&chosen), ["shards"], "what is given counts");
    let few = Definition { max_keys: Some(99_999), ..many.clone() };
    let given = Definition { shards: Some(4), ..many };
    for (definition, shards) in [(of("COUNT(1h, a, b)"), None), (few, None), (given, Some(4))] {
        assert_eq!(definition.with_default_shards(Some(64)).shards, shards);
    }
}

#[test]
fn shards_are_limited_and_part_of_the_definition() {
    let plain = Definition::new("COUNT(1h, a, b)".parse().unwrap(), "1m".parse().unwrap());
    for shards in [1, 24, 64] {
        let spread = Definition { shards: Some(shards), ..plain.clone() };
        assert!(spread.layout().is_ok());
        assert_eq!(spread.differences(&plain), ["shards"]);
    }
    for shards in [0, 65, u32::MAX] {
        let error = Definition { shards: Some(shards), ..plain.clone() }.layout().unwrap_err();
        assert_eq!(error.field(), "shards");
        assert!(error.to_string().contains("1 to 64"), "{error}");
    }
}

#[test]
fn incompatible_keys_are_named() {
    for (json, key) in [
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","mode":"from_first"}"#, "mode"),
        (r#"{"metric":"AVG(1h, a, v, b)","mode":"from_first","ranked":false}"#, "mode"),
        (r#"{"metric":"COUNT(1h, a, b)","mode":"from_first","ranked":false,"cover":"full"}"#, "mode"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","keep":"2h"}"#, "keep"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","ranked":false,"keep":"30m"}"#, "keep"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1s","ranked":false,"keep":"2h"}"#, "metric"),
        (r#"{"metric":"COUNT(1m, a, b)","slot":"1s","ranked":false,"keep":"2h"}"#, "keep"),
        (r#"{"metric":"COUNT_DISTINCT(1h, a, b, c)","slot":"1m","ranked":false,"keep":"2h"}"#, "keep"),
        (r#"{"metric":"COUNT_DISTINCT(1h, a, b, c)","slot":"1m","decimals":2}"#, "decimals"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","min_samples":2}"#, "min_samples"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","max_values":5}"#, "max_values"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","dedupe":"59s"}"#, "dedupe"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","dedupe":"91d","windows":["7d/6h"]}"#, "dedupe"),
        (r#"{"metric":"COUNT(all, a, b)","dedupe":"59s"}"#, "dedupe"),
        (r#"{"metric":"COUNT(all, a, b)","dedupe":"91d"}"#, "dedupe"),
        (r#"{"metric":"COUNT(all, a, b)","slot":"1h"}"#, "slot"),
        (r#"{"metric":"COUNT(all, a, b)","keep":"30d"}"#, "keep"),
        (r#"{"metric":"COUNT(all, a, b)","slot":"7d","keep":"30d"}"#, "keep"),
        (r#"{"metric":"COUNT(all, a, b)","slot":"1m","keep":"30d"}"#, "keep"),
        (r#"{"metric":"COUNT(all, a, b)","slot":"7m","keep":"30d"}"#, "slot"),
        (r#"{"metric":"COUNT(all, a, b)","slot":"1d","keep":"30d","windows":["7d/1d"]}"#, "windows"),
        (r#"{"metric":"COUNT_DISTINCT(all, a, b, c)","slot":"1d","keep":"30d"}"#, "keep"),
        (r#"{"metric":"COUNT(all, a, b)","cover":"full"}"#, "cover"),
        (r#"{"metric":"COUNT(all, a, b)","stamp":"end"}"#, "stamp"),
        (r#"{"metric":"COUNT(all, a, b)","timezone":"Europe/Berlin"}"#, "timezone"),
        (r#"{"metric":"COUNT(all, a, b)","ranked":false,"mode":"from_first","slot":"1d"}"#, "slot"),
        (r#"{"metric":"COUNT(all, a, b)","ranked":false,"mode":"from_first"}"#, "mode"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","windows":["7d/6h","7d/1d"]}"#, "windows"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","windows":["60m/1m"]}"#, "windows"),
        (r#"{"metric":"COUNT(all, a, b)","windows":["1h/1m","all"]}"#, "windows"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","windows":["7d/1m"]}"#, "windows"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","ranked":false,"windows":["all"]}"#, "windows"),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","stamp":"end","windows":["all"]}"#, "stamp"),
        (
            r#"{"metric":"COUNT(1h, a, b)","slot":"1m","windows":["1s/1s","2s/1s","3s/1s","4s/1s","5s/1s","6s/1s","7s/1s","8s/1s","9s/1s"]}"#,
            "windows",
        ),
    ] {
        let definition: Definition = serde_json::from_str(json).unwrap();
        assert_eq!(definition.layout().unwrap_err().field(), key, "{json}");
    }
    for (json, kept) in [
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m"}"#, 60),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","ranked":false}"#, 61),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","ranked":false,"keep":"2h"}"#, 120),
        (r#"{"metric":"COUNT(90s, a, b)","mode":"from_first","ranked":false}"#, 1),
        (r#"{"metric":"COUNT_DISTINCT(1h, a, b, c)","slot":"1m","ranked":false}"#, 60),
        (r#"{"metric":"COUNT(all, a, b)"}"#, 1),
        (r#"{"metric":"COUNT(all, a, b)","slot":"1h","keep":"30d","timezone":"Asia/Kathmandu","stamp":"end"}"#, 1),
        (r#"{"metric":"COUNT(all, a, b)","ranked":false,"dedupe":"90d"}"#, 1),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","dedupe":"2d","windows":["7d/6h","all"]}"#, 60),
        (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","dedupe":"90d"}"#, 60),
        (r#"{"metric":"COUNT(1h, a, b)","ranked":false,"mode":"from_first","dedupe":"1m"}"#, 1),
        (r#"{"metric":"COUNT(all, a, b)","timezone":"Europe/Berlin","cover":"full","windows":["7d/1d"]}"#, 1),
    ] {
        let definition: Definition = serde_json::from_str(json).unwrap();
        assert_eq!(definition.layout().unwrap().kept, kept, "{json}");
    }
}
