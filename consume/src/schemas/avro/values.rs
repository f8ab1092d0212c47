//! Values of Avro as JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use serde::Serialize;

use super::decimal::decimal;
use super::{AvroSchema, AvroType};
use crate::schemas::{MAX_DEPTH, MAX_VALUE};

const DAY: i64 = 86_400;

/// A value that is read from its beginning.
struct Decoding<'v> {
    types: &'v [AvroType],
    rest: &'v [u8],
    json: Vec<u8>,
}

impl AvroSchema {
    /// Returns the JSON of a value, or why it is none of this schema.
    pub fn json(&self, value: &[u8]) -> Result<Vec<u8>, String> {
        let mut decoding = Decoding { types: &self.types, rest: value, json: Vec::with_capacity(2 * value.len()) };
        decoding.value(self.root, 0)?;
        match decoding.rest {
            [] => Ok(decoding.json),
            rest => Err(format!("{} bytes follow its end", rest.len())),
        }
    }
}

impl<'v> Decoding<'v> {
    /// Appends a value. What has no bytes makes JSON too, so its bound is one of the work.
    fn value(&mut self, at: usize, depth: usize) -> Result<(), String> {
        if self.json.len() > MAX_VALUE {
            return Err(format!("its JSON has more than {MAX_VALUE} bytes"));
        }
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        let types = self.types;
        match &types[at] {
            AvroType::Null => self.json.extend_from_slice(b"null"),
            AvroType::Boolean => match self.take(1)? {
                [0] => self.json.extend_from_slice(b"false"),
                [1] => self.json.extend_from_slice(b"true"),
                _ => return Err("a truth value is neither 0 nor 1".to_owned()),
            },
            AvroType::Integer => {
                let number = self.integer()?;
                self.write(&number)?;
            }
            AvroType::Float => {
                let number = f32::from_le_bytes(self.array()?);
                self.write(&number)?;
            }
            AvroType::Double => {
                let number = f64::from_le_bytes(self.array()?);
                self.write(&number)?;
            }
            AvroType::Bytes => {
                let bytes = self.sized()?;
                self.write(&BASE64_STANDARD.encode(bytes))?;
            }
            AvroType::Fixed(size) => {
                let bytes = self.take(*size)?;
                self.write(&BASE64_STANDARD.encode(bytes))?;
            }
            AvroType::Text => self.text()?,
            AvroType::Enum(names) => {
                let name = choice(self.integer()?, names)?;
                self.json.extend_from_slice(name.as_bytes());
            }
            AvroType::Record(fields) => {
                self.json.push(b'{');
                for (at, (name, inner)) in fields.iter().enumerate() {
                    if at > 0 {
                        self.json.push(b',');
                    }
                    self.json.extend_from_slice(name.as_bytes());
                    self.value(*inner, depth + 1)?;
                }
                self.json.push(b'}');
            }
            AvroType::Array(inner) => {
                self.json.push(b'[');
                self.blocks(|this| this.value(*inner, depth + 1))?;
                self.json.push(b']');
            }
            AvroType::Map(inner) => {
                self.json.push(b'{');
                self.blocks(|this| {
                    this.text()?;
                    this.json.push(b':');
                    this.value(*inner, depth + 1)
                })?;
                self.json.push(b'}');
            }
            AvroType::Union(types) => {
                let inner = *choice(self.integer()?, types)?;
                self.value(inner, depth)?;
            }
            AvroType::Same(inner) => self.value(*inner, depth)?,
            AvroType::Date => {
                let days = self.integer()?;
                let date = days.checked_mul(DAY).and_then(|time| DateTime::from_timestamp(time, 0)).filter(is_plain);
                match date {
                    Some(date) => self.write(&date.format("%Y-%m-%d").to_string())?,
                    None => self.write(&days)?,
                }
            }
            AvroType::Time(in_second, has_zone) => {
                let number = self.integer()?;
                match time(number, *in_second, *has_zone) {
                    Some(time) => self.write(&time)?,
                    None => self.write(&number)?,
                }
            }
            AvroType::Decimal(scale, size) => {
                let bytes = match size {
                    Some(size) => self.take(*size)?,
                    None => self.sized()?,
                };
                self.write(&decimal(bytes, *scale)?)?;
            }
            AvroType::Uuid => {
                let hex = format!("{:032x}", u128::from_be_bytes(self.array()?));
                let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                self.write(&parts.join("-"))?;
            }
            AvroType::Named(name, _) => return Err(format!("the type '{name}' is not defined")),
        }
        Ok(())
    }

    /// Appends what a list or a map has, block by block, with commas.
    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        let mut is_first = true;
        loop {
            let number = self.integer()?;
            if number == 0 {
                return Ok(());
            }
            if number < 0 {
                // The size of the block, for those who pass it.
                self.integer()?;
            }
            for _ in 0..number.unsigned_abs() {
                if !std::mem::replace(&mut is_first, false) {
                    self.json.push(b',');
                }
                item(self)?;
            }
        }
    }

    fn take(&mut self, size: usize) -> Result<&'v [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or_else(ends)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], String> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(ends)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Takes bytes that say how many they are.
    fn sized(&mut self) -> Result<&'v [u8], String> {
        let size = usize::try_from(self.integer()?).map_err(|_| "a length is below 0".to_owned())?;
        self.take(size)
    }

    fn integer(&mut self) -> Result<i64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
            }
        }
        Err("an integer has more than 64 bits".to_owned())
    }

    fn text(&mut self) -> Result<(), String> {
        let text = std::str::from_utf8(self.sized()?).map_err(|_| "a text is not UTF-8".to_owned())?;
        self.write(text)
    }

    fn write(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), String> {
        serde_json::to_writer(&mut self.json, value).map_err(|error| error.to_string())
    }
}

fn ends() -> String {
    "it ends too early".to_owned()
}

fn choice<T>(number: i64, choices: &[T]) -> Result<&T, String> {
    let chosen = usize::try_from(number).ok().and_then(|number| choices.get(number));
    chosen.ok_or_else(|| format!("it chooses {number} of {}", choices.len()))
}

/// Returns whether the year has four digits.
fn is_plain(time: &DateTime<Utc>) -> bool {
    (0..=9_999).contains(&time.year())
}

/// Returns a time as text, with as many digits as its unit has; without a zone if it has none.
fn time(number: i64, in_second: i64, has_zone: bool) -> Option<String> {
    let (seconds, rest) = (number.div_euclid(in_second), number.rem_euclid(in_second));
    let nanoseconds = u32::try_from(rest * (1_000_000_000 / in_second)).ok()?;
    let time = DateTime::from_timestamp(seconds, nanoseconds).filter(is_plain)?;
    let format = match in_second {
        1_000 => SecondsFormat::Millis,
        1_000_000 => SecondsFormat::Micros,
        _ => SecondsFormat::Nanos,
    };
    let mut text = time.to_rfc3339_opts(format, true);
    if !has_zone {
        text.pop();
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn schema(texts: &[&str]) -> AvroSchema {
        AvroSchema::parse(texts.iter().copied()).unwrap()
    }

    fn json(schema_text: &str, value: &[u8]) -> Result<String, String> {
        schema(&[schema_text]).json(value).map(|json| String::from_utf8(json).unwrap())
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    const LIKE: &str = r#"{"type": "record", "name": "Like", "namespace": "shop", "fields": [
        {"name": "post", "type": "string"}, {"name": "user", "type": "User"}, {"name": "count", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}},
        {"name": "owed", "type": {"type": "fixed", "name": "F8", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 3}},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["LIKE", "SHARE"]}},
        {"name": "raw", "type": "bytes"}, {"name": "f", "type": "float"}, {"name": "nan", "type": "double"},
        {"name": "ok", "type": "boolean"}, {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": ["null", "int"]}}, {"name": "next", "type": ["null", "Like"]}]}"#;
    const USER: &str = r#"{"type": "record", "name": "User", "namespace": "shop", "fields": [
        {"name": "name", "type": ["null", "string"]},
        {"name": "team", "type": ["null", {"type": "enum", "name": "other.Team", "symbols": ["RED", "BLUE"]}]}]}"#;
    /// What fastavro has written: such a record in itself.
    const WRITTEN: &str = "0c61202262220a0204c3bc0202feffffffffffffffff0110fe4964b459cf0cfb000000000000000796c1a398826701aabfa3\
        98826788c0024830303030303030302d303030302d303030302d303030302d303030303030303030303037020400ffcdcc8c3f000000000000f8\
        7f01040278027900040261020202620000020c61202262220a0204c3bc0202feffffffffffffffff0110fe4964b459cf0cfb0000000000000007\
        96c1a398826701aabfa398826788c0024830303030303030302d303030302d303030302d303030302d3030303030303030303030370204\
        00ffcdcc8c3f000000000000f87f0104027802790004026102020262000000";

    #[test]
    fn what_another_library_has_written_is_read() {
        let one = |next: &str| {
            format!(
                r#"{{"post":"a \"b\"\n","user":{{"name":"ü","team":"BLUE"}},"count":9223372036854775807,"price":"-1234567890123456.05","owed":"0.007","ms":"2026-01-31T00:46:58.123Z","us":"1969-12-31T23:59:59.999999Z","local":"2026-01-31T00:46:58.005","day":"2026-01-31","id":"00000000-0000-0000-0000-000000000007","kind":"SHARE","raw":"AP8=","f":1.1,"nan":null,"ok":true,"tags":["x","y"],"more":{{"a":1,"b":null}},"next":{next}}}"#
            )
        };
        let schema = schema(&[LIKE, USER]);
        let value = bytes(WRITTEN);
        assert_eq!(String::from_utf8(schema.json(&value).unwrap()).unwrap(), one(&one("null")));
        // Any beginning of it, and more than it, is no value.
        for end in 0..value.len() {
            assert!(schema.json(&value[..end]).is_err(), "{end}");
        }
        assert!(schema.json(&[value, vec![0]].concat()).unwrap_err().contains("1 bytes follow"));
    }

    #[test]
    fn times_have_the_digits_of_their_unit() {
        let nanos = r#"{"type": "long", "logicalType": "timestamp-nanos"}"#;
        assert_eq!(json(nanos, &[2]).unwrap(), r#""1970-01-01T00:00:00.000000001Z""#);
        let local = r#"{"type": "long", "logicalType": "local-timestamp-micros"}"#;
        assert_eq!(json(local, &[1]).unwrap(), r#""1969-12-31T23:59:59.999999""#);
        // What is no time of four digits stays a number.
        let millis = r#"{"type": "long", "logicalType": "timestamp-millis"}"#;
        let last = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(json(millis, &last).unwrap(), i64::MIN.to_string());
        let days = r#"{"type": "int", "logicalType": "date"}"#;
        assert_eq!(json(days, &last).unwrap(), i64::MIN.to_string());
        let uuid = r#"{"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}"#;
        assert_eq!(json(uuid, &[0x0f; 16]).unwrap(), r#""0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f""#);
        // What is not known is what its type is.
        let other = r#"{"type": "int", "logicalType": "time-millis"}"#;
        assert_eq!(json(other, &[2]).unwrap(), "1");
        let times = "2026-01-31T00:46:58.123456789Z";
        assert_eq!(rolltop::cli::replay::time_format::parse(times).map(|time| time.millis()), Some(1_769_820_418_123));
    }

    #[test]
    fn names_are_those_of_their_namespace_or_of_none() {
        let text = r#"{"type": "record", "name": "a.R", "fields": [{"name": "x", "type": {"type": "enum", "name": "E", "symbols": ["P"]}},
            {"name": "y", "type": "E"}, {"name": "z", "type": "a.E"}, {"name": "plain", "type": "Plain"}]}"#;
        let plain = r#"{"type": "fixed", "name": "Plain", "size": 1}"#;
        let made = schema(&[text, plain]).json(&[0, 0, 0, 7]).unwrap();
        assert_eq!(String::from_utf8(made).unwrap(), r#"{"x":"P","y":"P","z":"P","plain":"Bw=="}"#);
        for (text, needle) in [
            (r#""Other""#, "'Other' is not defined"),
            (r#"{"type": "record", "name": "R", "fields": [{"name": "x", "type": "b.E"}]}"#, "'b.E' is not defined"),
            (r#"[["null"], "int"]"#, "union"),
            (r#"{"type": "array"}"#, "null is not a type"),
            (r#"{"type": "fixed", "name": "F", "size": -1}"#, "no size"),
            (r#"{"type": "enum", "symbols": []}"#, "no name"),
            ("{", "EOF"),
        ] {
            let error = AvroSchema::parse([text].into_iter()).unwrap_err();
            assert!(error.contains(needle), "{text}: {error}");
        }
        let twice = AvroSchema::parse([plain, plain].into_iter()).unwrap_err();
        assert!(twice.contains("defined twice"), "{twice}");
    }

    #[test]
    fn a_hostile_value_ends() {
        let many = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
        for (text, value) in [
            // 2^60 items without bytes, a text as long, and a block of -2^63 items.
            (r#"{"type": "array", "items": "null"}"#, &many[..]),
            (r#"{"type": "array", "items": {"type": "record", "name": "R", "fields": []}}"#, &many[..]),
            (r#""string""#, &many[..]),
            (r#""bytes""#, &many[..]),
            (r#"{"type": "array", "items": "null"}"#, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]),
            (r#""long""#, &[0x80; 20]),
            (r#""string""#, &[1]),
            (r#"["null"]"#, &[2]),
            (r#"["null"]"#, &[1]),
        ] {
            assert!(json(text, value).is_err(), "{text}");
        }
        let list = r#"{"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}"#;
        let deep = vec![2; 100_000];
        assert!(json(list, &deep).unwrap_err().contains("nested more than"));
        let fits = [vec![2; MAX_DEPTH - 1], vec![0]].concat();
        // The JSON is one that can be read.
        assert!(serde_json::from_str::<Value>(&json(list, &fits).unwrap()).is_ok());
        let itself = r#"{"type": "record", "name": "L", "fields": [{"name": "n", "type": "L"}]}"#;
        assert!(json(itself, &[]).unwrap_err().contains("nested more than"));
        // Without a byte, 2^40 records in 41 types.
        let mut text = r#"{"type": "record", "name": "R0", "fields": []}"#.to_owned();
        for at in 1..=40 {
            text = format!(
                r#"{{"type": "record", "name": "R{at}", "fields": [{{"name": "a", "type": {text}}}, {{"name": "b", "type": "R{}"}}]}}"#,
                at - 1
            );
        }
        assert!(json(&text, &[]).unwrap_err().contains("JSON has more than"));
    }
}
