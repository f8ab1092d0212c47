//! Keys: the fields of an event that name a subject or a counted value.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Field, FieldFault, Fields, NameError};

/// The part of an event that names a subject: a field, a value derived from a field, or several of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The field's own text.
    Field(Box<str>),
    /// `prefix(ip, 24)`: the network of this many bits that contains an IP address, such as `203.0.113.0/24`. The same
    /// number of bits applies to IPv6 addresses. An IPv4 address has 32 bits, so a longer prefix keeps it whole.
    Prefix { field: Box<str>, bits: u8 },
    /// `(ip, device_id)`: a compact JSON array of the parts, such as `["203.0.113.9","d-1"]`. Never nested.
    Tuple(Vec<Key>),
}

impl Key {
    /// Returns the text of the key for these fields. A text field gives its text, a number the number as sent, a truth
    /// value `true` or `false`. Several parts give a compact JSON array, in which numbers and booleans keep their
    /// types.
    pub fn text(&self, fields: &Fields) -> Result<String, FieldFault> {
        self.read(fields).map(Cow::into_owned)
    }

    /// Returns the text, parsed as a subject or a counted value. An error of `parse` names the whole key, not one
    /// field.
    pub(super) fn name<T>(&self, fields: &Fields, parse: fn(&str) -> Result<T, NameError>) -> Result<T, FieldFault> {
        let text = self.read(fields)?;
        parse(&text).map_err(|error| FieldFault::Invalid { field: self.to_string().into(), detail: error.to_string() })
    }

    /// Returns a text that a client gives as this key as [`text`](Self::text) spells it. In an array, spaces and how
    /// characters are escaped do not matter, and an address stands for its network. Returns `None` if no fields give
    /// the text.
    pub(super) fn spelled<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Key::Field(_) => Some(Cow::Borrowed(text)),
            Key::Prefix { bits, .. } => {
                let (address, length) = text.split_once('/').unwrap_or((text, ""));
                let network = network_of(address.parse().ok()?, *bits);
                (length.is_empty() || network.ends_with(&format!("/{length}"))).then_some(Cow::Owned(network))
            }
            Key::Tuple(parts) => {
                let given: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                if given.len() != parts.len() {
                    return None;
                }
                let spelled = |(part, given): (&Key, &RawValue)| match (part, serde_json::from_str(given.get()).ok()?) {
                    (part, Value::String(text)) => Some(Value::from(part.spelled(&text)?).to_string()),
                    (Key::Field(_), Value::Number(_) | Value::Bool(_)) => Some(given.get().to_owned()),
                    _ => None,
                };
                let array: Option<Vec<String>> = parts.iter().zip(given).map(spelled).collect();
                Some(Cow::Owned(format!("[{}]", array?.join(","))))
            }
        }
    }

    /// Returns what a text must be that [`spelled`](Self::spelled) takes, for an error message.
    pub(super) fn form(&self) -> &'static str {
        match self {
            Key::Field(_) => "a text",
            Key::Prefix { .. } => "an IP address, or its network such as 203.0.113.0/24",
            Key::Tuple(_) => "a JSON array of what each of these gives, such as [\"se\",\"jazz\"]",
        }
    }

    /// Returns whether the key depends on this field.
    pub fn reads(&self, name: &str) -> bool {
        match self {
            Key::Field(field) | Key::Prefix { field, .. } => **field == *name,
            Key::Tuple(parts) => parts.iter().any(|part| part.reads(name)),
        }
    }

    fn read<'a>(&self, fields: &'a Fields) -> Result<Cow<'a, str>, FieldFault> {
        match self {
            Key::Field(field) => Ok(Cow::Borrowed(match fields.require(field)? {
                Field::Text(text) | Field::Number(text) => text,
                Field::Bool(true) => "true",
                Field::Bool(false) => "false",
            })),
            Key::Prefix { field, bits } => network(fields, field, *bits).map(Cow::Owned),
            Key::Tuple(parts) => {
                let mut array = String::from("[");
                for (i, part) in parts.iter().enumerate() {
                    array.push_str(if i > 0 { "," } else { "" });
                    let text = part.read(fields)?;
                    match part {
                        Key::Field(field) if !matches!(fields.get(field), Some(Field::Text(_))) => {
                            array.push_str(&text);
                        }
                        _ => array.push_str(&Value::from(text).to_string()),
                    }
                }
                array.push(']');
                Ok(Cow::Owned(array))
            }
        }
    }
}

/// Returns the network of `bits` bits that contains the address in `field`. An IPv4-mapped IPv6 address is treated as
/// the IPv4 address.
fn network(fields: &Fields, field: &str, bits: u8) -> Result<String, FieldFault> {
    let invalid = |detail| FieldFault::Invalid { field: field.into(), detail };
    let address = match fields.require(field)? {
        Field::Text(text) => text.parse::<IpAddr>().map_err(|_| {
            let shown: String = text.chars().take(40).collect();
            invalid(format!("'{shown}' is not an IP address"))
        })?,
        other => return Err(invalid(format!("expected an IP address, found {}", other.described()))),
    };
    Ok(network_of(address, bits))
}

fn network_of(address: IpAddr, bits: u8) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let bits = bits.min(32);
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            format!("{}/{bits}", std::net::Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let bits = bits.min(128);
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            format!("{}/{bits}", std::net::Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Field(field) => f.write_str(field),
            Key::Prefix { field, bits } => write!(f, "prefix({field}, {bits})"),
            Key::Tuple(parts) => {
                f.write_str("(")?;
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
pub(super) mod strategy {
    use proptest::prelude::*;

    use super::Key;

    pub fn key() -> impl Strategy<Value = Key> {
        let name = || "[A-Za-z_][A-Za-z0-9_.-]{0,8}".prop_map(String::into_boxed_str);
        let part = prop_oneof![
            3 => name().prop_map(Key::Field),
            1 => (name(), 1u8..=128).prop_map(|(field, bits)| Key::Prefix { field, bits }),
        ];
        prop_oneof![3 => part.clone(), 1 => prop::collection::vec(part, 2..=8).prop_map(Key::Tuple)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(ip: &str) -> Fields {
        let mut fields = Fields::default();
        fields.set("ip", Field::Text(ip.into()));
        fields.set("name", Field::Text("a \"b\"\n".into()));
        fields.set("n", Field::Number("1.50e3".into()));
        fields.set("ok", Field::Bool(true));
        fields
    }

    fn prefix(bits: u8) -> Key {
        Key::Prefix { field: "ip".into(), bits }
    }

    #[test]
    fn prefixes_of_ipv4_and_ipv6_addresses() {
        for (ip, bits, network) in [
            ("203.0.113.9", 24, "203.0.113.0/24"),
            ("203.0.113.9", 1, "128.0.0.0/1"),
            ("203.0.113.9", 32, "203.0.113.9/32"),
            ("203.0.113.9", 64, "203.0.113.9/32"),
            ("::ffff:203.0.113.9", 24, "203.0.113.0/24"),
            ("2001:db8:1:2:3::4", 64, "2001:db8:1:2::/64"),
            ("2001:0DB8:ffff::4", 24, "2001:d00::/24"),
            ("::1", 128, "::1/128"),
        ] {
            assert_eq!(prefix(bits).text(&fields(ip)).as_deref(), Ok(network), "{ip} {bits}");
        }
        for ip in ["", "203.0.113", "203.0.113.9:80", "203.0.113.9/24", "fe80::1%eth0", " 1.2.3.4", "host"] {
            let fault = prefix(24).text(&fields(ip)).unwrap_err();
            assert_eq!(fault.to_string(), format!("the field 'ip': '{ip}' is not an IP address"));
        }
        let number = Key::Prefix { field: "n".into(), bits: 24 };
        let fault = number.text(&fields("")).unwrap_err().to_string();
        assert_eq!(fault, "the field 'n': expected an IP address, found a number");
    }

    #[test]
    fn composite_keys_are_compact_json_arrays() {
        let field = |name: &str| Key::Field(name.into());
        let key = Key::Tuple(vec![prefix(8), field("name"), field("n"), field("ok")]);
        let text = key.text(&fields("10.1.2.3")).unwrap();
        assert_eq!(text, r#"["10.0.0.0/8","a \"b\"\n",1.50e3,true]"#);
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        assert_eq!(field("n").text(&fields("")).as_deref(), Ok("1.50e3"));
        let fault = Key::Tuple(vec![field("n"), field("gone")]).text(&fields("")).unwrap_err();
        assert_eq!(fault.field(), "gone");
    }

    #[test]
    fn given_texts_are_spelled_as_fields_give_them() {
        let field = |name: &str| Key::Field(name.into());
        for (given, spelled) in [
            ("10.1.2.3", Some("10.1.0.0/16")),
            ("10.1.2.3/16", Some("10.1.0.0/16")),
            ("10.1.0.0/16", Some("10.1.0.0/16")),
            ("::ffff:10.1.2.3", Some("10.1.0.0/16")),
            ("2001:db8::1", Some("2001::/16")),
            ("10.1.0.0/6", None),
            ("10.1.0.0/24", None),
            ("10.1", None),
            ("", None),
        ] {
            assert_eq!(prefix(16).spelled(given).as_deref(), spelled, "{given}");
        }
        let key = Key::Tuple(vec![prefix(8), field("name")]);
        for (given, spelled) in [
            (r#"["10.0.0.0/8","a"]"#, Some(r#"["10.0.0.0/8","a"]"#)),
            (r#" [ "10.1.2.3", "\u00e9\n\"" ] "#, Some(r#"["10.0.0.0/8","é\n\""]"#)),
            (r#"["10.0.0.0/8", 1.50e3]"#, Some(r#"["10.0.0.0/8",1.50e3]"#)),
            (r#"["10.0.0.0/8",true]"#, Some(r#"["10.0.0.0/8",true]"#)),
            (r#"["10.0.0.0/8",null]"#, None),
            (r#"["10.0.0.0/8",["a"]]"#, None),
            (r#"["a","10.0.0.0/8"]"#, None),
            (r#"["10.0.0.0/8"]"#, None),
            (r#"["10.0.0.0/8","a","b"]"#, None),
            ("10.0.0.0/8,a", None),
        ] {
            assert_eq!(key.spelled(given).as_deref(), spelled, "{given}");
        }
        assert_eq!(field("name").spelled("[ 1 ]").as_deref(), Some("[ 1 ]"));
    }
}
