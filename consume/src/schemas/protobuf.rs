//! Schemas of Protobuf, and their messages as JSON.

use std::collections::HashMap;
use std::io::{self, Write};

use prost_reflect::{DynamicMessage, FileDescriptor, MessageDescriptor, SerializeOptions};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::protobuf_files::FILES;
use super::{MAX_DEPTH, MAX_VALUE};

/// The file of the schema itself: no import has this name.
const MAIN: &str = "rolltop.main.proto";
/// How deep braces are nested in a file at most. The values of options are parsed as deep as they are.
const MAX_BRACES: usize = 200;

/// The canonical JSON, but for: the names that the file has, 0 and "" as the values that they are, numbers as numbers.
const JSON: SerializeOptions =
    SerializeOptions::new().use_proto_field_name(true).skip_default_fields(false).stringify_64_bit_integers(false);

/// A file with messages.
pub struct ProtobufSchema {
    file: FileDescriptor,
}

/// The files of a schema by their paths.
struct ProtobufTexts(HashMap<String, String>);

/// JSON that has a bound.
struct BoundedJson(Vec<u8>);

impl ProtobufSchema {
    /// Compiles texts, of which the first has the schema and the others are what it imports, with their paths.
    pub fn parse(texts: Vec<(String, String)>) -> Result<Self, String> {
        let mut files = HashMap::new();
        for (at, (name, text)) in texts.into_iter().enumerate() {
            if depth(&text) > MAX_BRACES {
                return Err(format!("its braces are nested more than {MAX_BRACES} deep"));
            }
            files.insert(if at == 0 { MAIN.to_owned() } else { name }, text);
        }
        let mut all = ChainFileResolver::new();
        all.add(ProtobufTexts(files));
        all.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(all);
        compiler.open_file(MAIN).map_err(|error| error.to_string())?;
        let file = compiler.descriptor_pool().get_file_by_name(MAIN).ok_or("it has no file")?;
        Ok(Self { file })
    }

    /// Returns the JSON of a value, which says first which message of the file it is; or why it is none of this schema.
    pub fn json(&self, mut value: &[u8]) -> Result<Vec<u8>, String> {
        let message = self.message(&mut value)?;
        let message = DynamicMessage::decode(message, value).map_err(|error| error.to_string())?;
        let mut json = BoundedJson(Vec::with_capacity(2 * value.len()));
        let mut serializer = serde_json::Serializer::new(&mut json);
        message.serialize_with_options(&mut serializer, &JSON).map_err(|error| error.to_string())?;
        Ok(json.0)
    }

    /// Returns the message that the indexes at the beginning name: of the file, then of the message before.
    fn message(&self, value: &mut &[u8]) -> Result<MessageDescriptor, String> {
        let number = index(value)?;
        if number > MAX_DEPTH {
            return Err(format!("its message is nested more than {MAX_DEPTH} deep"));
        }
        // None stand for the first message.
        let first = if number == 0 { 0 } else { index(value)? };
        let none = || "the schema has no message of its index".to_owned();
        let mut message = self.file.messages().nth(first).ok_or_else(none)?;
        for _ in 1..number {
            // What a map is made of is no message of the file.
            let inner = message.child_messages().filter(|inner| !inner.is_map_entry()).nth(index(value)?);
            message = inner.ok_or_else(none)?;
        }
        Ok(message)
    }
}

impl FileResolver for ProtobufTexts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let known = || FILES.iter().find(|(path, _)| *path == name).map(|(_, text)| *text);
        let text = self.0.get(name).map(String::as_str).or_else(known);
        File::from_source(name, text.ok_or_else(|| protox::Error::file_not_found(name))?)
    }
}

impl Write for BoundedJson {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.0.len() + part.len() > MAX_VALUE {
            return Err(io::Error::other(format!("its JSON has more than {MAX_VALUE} bytes")));
        }
        self.0.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes a number that is not negative, in the form of a sint32.
fn index(value: &mut &[u8]) -> Result<usize, String> {
    let number = prost::encoding::decode_varint(value).map_err(|error| error.to_string())?;
    match number & 1 {
        0 => usize::try_from(number >> 1).map_err(|error| error.to_string()),
        _ => Err("an index of its message is negative".to_owned()),
    }
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'<' => depth += 1,
            b'}' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIKE: &str = r#"syntax = "proto3"; package shop;
        import "user.proto"; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
        message Other { string a = 1; }
        message Outer {
          message First {}
          map<string, int32> before = 1;
          message Like {
            enum Kind { NONE = 0; SHARE = 1; }
            string post_id = 1; int64 count = 2; uint64 large = 3; Kind kind = 4; google.protobuf.Timestamp at = 5;
            shop.User user = 6; repeated string tags = 7; map<string, int32> more = 8; bytes raw = 9;
            optional int32 maybe = 10; oneof how { string web = 11; string app = 12; } double ratio = 13; bool ok = 14;
            google.protobuf.Int64Value wrapped = 15; Like next = 16; User absent = 17;
          }
        }"#;
    const USER: &str = r#"syntax = "proto3"; package shop; message User { string display_name = 1; }"#;
    /// What Google's library for Python has written: a like with an empty one inside.
    const WRITTEN: &str = "0a06706f73742d31108080808080808080800118ffffffffffffffffff0120012a0b0882a2f5cb0610c0a9d33a32040a02c3\
        bc3a017842050a016110014a0200ff620069000000000000e03f7a020805820100";

    fn schema(texts: &[(&str, &str)]) -> Result<ProtobufSchema, String> {
        ProtobufSchema::parse(texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn what_another_library_has_written_is_read() {
        let schema = schema(&[("", LIKE), ("user.proto", USER)]).unwrap();
        let text = |value: &[u8]| schema.json(value).map(|json| String::from_utf8(json).unwrap());
        let empty =
            r#"{"post_id":"","count":0,"large":0,"kind":"NONE","tags":[],"more":{},"raw":"","ratio":0.0,"ok":false}"#;
        // The second message of the second one.
        let value = [vec![4, 2, 2], bytes(WRITTEN)].concat();
        let expected = format!(
            r#"{{"post_id":"post-1","count":-9223372036854775808,"large":18446744073709551615,"kind":"SHARE","at":"2026-01-31T00:46:58.123Z","user":{{"display_name":"ü"}},"tags":["x"],"more":{{"a":1}},"raw":"AP8=","app":"","ratio":0.5,"ok":false,"wrapped":5,"next":{empty}}}"#
        );
        assert_eq!(text(&value), Ok(expected));
        assert_eq!(text(&[0]).as_deref(), Ok(r#"{"a":""}"#));
        assert_eq!(text(&[2, 0]).as_deref(), Ok(r#"{"a":""}"#));
        for (value, needle) in [
            (&[][..], "varint"),
            (&[4, 2], "varint"),
            (&[1], "negative"),
            (&[2, 4], "no message of its index"),
            (&[4, 2, 4], "no message of its index"),
            (&[254, 255, 255, 255, 255, 255, 255, 255, 255, 1], "nested more than"),
            (&[0, 10, 5, 1], "buffer"),
        ] {
            let error = text(value).unwrap_err();
            assert!(error.contains(needle), "{value:?}: {error}");
        }
    }

    #[test]
    fn files_that_writers_take_for_known_are_there() {
        let imports = FILES.iter().map(|(path, _)| format!("import \"{path}\";\n")).collect::<String>();
        let text = format!(
            "syntax = \"proto3\";\n{imports}message A {{ option (confluent.message_meta).doc = \"a\"; \
             confluent.type.Decimal price = 1 [(confluent.field_meta) = {{ params: [{{ key: \"precision\", value: \"9\" }}] }}]; \
             google.type.Date day = 2; }}"
        );
        let schema = schema(&[("", &text)]).unwrap();
        let json = schema.json(&bytes("00120308ea0f")).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), r#"{"day":{"year":2026,"month":0,"day":0}}"#);
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for (text, needle) in [
            ("message {", "expected"),
            ("import \"other.proto\"; message A {}", "other.proto"),
            ("syntax = \"proto3\"; message A { B b = 1; }", "'B'"),
        ] {
            let error = schema(&[("", text)]).err().unwrap();
            assert!(error.contains(needle), "{text}: {error}");
        }
        let options = |deep: usize| {
            format!(
                "syntax = \"proto2\"; import \"google/protobuf/descriptor.proto\"; message A {{ optional A a = 1; }}
                 extend google.protobuf.MessageOptions {{ optional A a = 50000; }}
                 message B {{ option (a) = {{ {} {} }}; }}",
                "a {".repeat(deep),
                "}".repeat(deep)
            )
        };
        assert!(schema(&[("", &options(100_000))]).err().unwrap().contains("braces"));
        assert!(schema(&[("", &options(MAX_BRACES - 5))]).is_ok());
    }

    #[test]
    fn a_hostile_message_ends() {
        let list = schema(&[("", "syntax = \"proto3\"; message L { L next = 1; repeated L more = 2; }")]).unwrap();
        let mut value = Vec::new();
        for _ in 0..1_000 {
            let mut outer = vec![10];
            prost::encoding::encode_varint(value.len() as u64, &mut outer);
            value = [outer, value].concat();
        }
        assert!(list.json(&[vec![0], value].concat()).unwrap_err().contains("recursion"));
        // Each two bytes become thousands.
        let fields = (1..1_000).map(|at| format!("int32 a_field_with_a_long_name_{at} = {at};")).collect::<String>();
        let text = format!("syntax = \"proto3\"; message M {{ repeated F f = 1; }} message F {{ {fields} }}");
        let wide = schema(&[("", &text)]).unwrap();
        let value = [vec![0], [10, 0].repeat(10_000)].concat();
        assert!(wide.json(&value).unwrap_err().contains("JSON has more than"));
    }
}
