//! Schemas of Avro.
//!
//! Values are read by them straight into JSON (`values`): what a hostile value takes is bounded by the JSON that is made.

mod decimal;
mod values;

use std::collections::HashMap;

use serde_json::Value;

/// The largest scale of a decimal number, in digits.
const MAX_SCALE: u64 = 1_000;

/// A schema: types that name each other by their index.
#[derive(Debug)]
pub struct AvroSchema {
    types: Vec<AvroType>,
    root: usize,
}

#[derive(Clone, Debug)]
enum AvroType {
    Null,
    Boolean,
    /// An int or a long, which are written in the same way.
    Integer,
    Float,
    Double,
    Bytes,
    /// A number of bytes.
    Fixed(usize),
    Text,
    /// The names, as JSON.
    Enum(Vec<String>),
    /// The names as JSON, each with a colon, and the types.
    Record(Vec<(String, usize)>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    /// Days since 1970.
    Date,
    /// A time since 1970, with the number of its units in a second, and whether it has a zone.
    Time(i64, bool),
    /// An integer divided by 10 as often as this says, in a number of bytes or in as many as the value says.
    Decimal(usize, Option<usize>),
    /// 16 bytes.
    Uuid,
    /// A named type by its name with a namespace, and without if that may be another one.
    Named(String, String),
    /// The type at this index.
    Same(usize),
}

/// The types of the texts that have been read.
#[derive(Default)]
struct AvroTypes {
    types: Vec<AvroType>,
    named: HashMap<String, usize>,
}

impl AvroSchema {
    /// Parses texts, of which the first has the schema and the others what it refers to.
    pub fn parse<'t>(texts: impl Iterator<Item = &'t str>) -> Result<Self, String> {
        let mut all = AvroTypes::default();
        let mut root = None;
        for text in texts {
            // Its depth has a bound, so that of `add` has one.
            let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            let added = all.add(&value, "")?;
            root.get_or_insert(added);
        }
        let AvroTypes { mut types, named } = all;
        for at in &mut types {
            if let AvroType::Named(full, plain) = at {
                let found = named.get(full).or_else(|| named.get(plain));
                *at = AvroType::Same(*found.ok_or_else(|| format!("the type '{full}' is not defined"))?);
            }
        }
        Ok(Self { types, root: root.ok_or("it is empty")? })
    }
}

impl AvroTypes {
    fn push(&mut self, added: AvroType) -> usize {
        self.types.push(added);
        self.types.len() - 1
    }

    /// Adds a type that is written in this namespace, with the types in it.
    fn add(&mut self, value: &Value, space: &str) -> Result<usize, String> {
        let added = match value {
            Value::String(name) => by_name(name, space),
            Value::Array(types) => {
                let types = types.iter().map(|inner| self.add(inner, space)).collect::<Result<Vec<_>, _>>()?;
                if types.iter().any(|inner| matches!(self.types[*inner], AvroType::Union(_))) {
                    return Err("a union is directly in a union".to_owned());
                }
                AvroType::Union(types)
            }
            Value::Object(_) => match &value["type"] {
                Value::String(name) => match name.as_str() {
                    "record" | "error" | "enum" | "fixed" => return self.define(name, value, space),
                    "array" => AvroType::Array(self.add(&value["items"], space)?),
                    "map" => AvroType::Map(self.add(&value["values"], space)?),
                    name => logical(by_name(name, space), value),
                },
                inner => return self.add(inner, space),
            },
            other => return Err(format!("{} is not a type", shown(other))),
        };
        Ok(self.push(added))
    }

    /// Adds a type that has a name.
    fn define(&mut self, kind: &str, value: &Value, space: &str) -> Result<usize, String> {
        let name = value["name"].as_str().ok_or_else(|| format!("{} has no name", shown(value)))?;
        let space = match name.rsplit_once('.') {
            Some((space, _)) => space,
            None => value["namespace"].as_str().unwrap_or(space),
        };
        let index = self.push(AvroType::Null);
        let name = full_name(name, space);
        if self.named.contains_key(&name) {
            return Err(format!("the type '{name}' is defined twice"));
        }
        let list = |member: &str| value[member].as_array().ok_or_else(|| format!("'{name}' has no list '{member}'"));
        let added = match kind {
            "enum" => AvroType::Enum(list("symbols")?.iter().map(Value::to_string).collect()),
            "fixed" => {
                let size = value["size"].as_u64().and_then(|size| usize::try_from(size).ok());
                logical(AvroType::Fixed(size.ok_or_else(|| format!("'{name}' has no size"))?), value)
            }
            _ => {
                let fields = list("fields")?;
                // It may have itself inside.
                self.named.insert(name, index);
                let fields = fields.iter().map(|field| {
                    let name = field["name"].as_str().ok_or_else(|| format!("{} has no name", shown(field)))?;
                    Ok((format!("{}:", Value::from(name)), self.add(&field["type"], space)?))
                });
                self.types[index] = AvroType::Record(fields.collect::<Result<_, String>>()?);
                return Ok(index);
            }
        };
        self.named.insert(name, index);
        self.types[index] = added;
        Ok(index)
    }
}

/// Returns the name with its namespace.
fn full_name(name: &str, space: &str) -> String {
    if name.contains('.') || space.is_empty() { name.to_owned() } else { format!("{space}.{name}") }
}

fn by_name(name: &str, space: &str) -> AvroType {
    match name {
        "null" => AvroType::Null,
        "boolean" => AvroType::Boolean,
        "int" | "long" => AvroType::Integer,
        "float" => AvroType::Float,
        "double" => AvroType::Double,
        "bytes" => AvroType::Bytes,
        "string" => AvroType::Text,
        name => AvroType::Named(full_name(name, space), name.to_owned()),
    }
}

/// Returns what a type means. What is not known means what the type is, as Avro says.
fn logical(plain: AvroType, value: &Value) -> AvroType {
    let scale = value.get("scale").map_or(Some(0), Value::as_u64).filter(|scale| *scale <= MAX_SCALE);
    match (value["logicalType"].as_str(), &plain, scale) {
        (Some("date"), AvroType::Integer, _) => AvroType::Date,
        (Some("timestamp-millis"), AvroType::Integer, _) => AvroType::Time(1_000, true),
        (Some("timestamp-micros"), AvroType::Integer, _) => AvroType::Time(1_000_000, true),
        (Some("timestamp-nanos"), AvroType::Integer, _) => AvroType::Time(1_000_000_000, true),
        (Some("local-timestamp-millis"), AvroType::Integer, _) => AvroType::Time(1_000, false),
        (Some("local-timestamp-micros"), AvroType::Integer, _) => AvroType::Time(1_000_000, false),
        (Some("local-timestamp-nanos"), AvroType::Integer, _) => AvroType::Time(1_000_000_000, false),
        (Some("decimal"), AvroType::Bytes, Some(scale)) => AvroType::Decimal(scale as usize, None),
        (Some("decimal"), AvroType::Fixed(size), Some(scale)) => AvroType::Decimal(scale as usize, Some(*size)),
        (Some("uuid"), AvroType::Fixed(16), _) => AvroType::Uuid,
        _ => plain,
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    text.chars().take(100).collect()
}
