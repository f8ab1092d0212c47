//! Types that are a text, or that users write as one.

/// Adds to types what follows from their text, which is their first field, or what they display:
///
/// - `as_str`, `display`, `borrow`: their first field;
/// - `serialize`: its first field, as a string; `serialize_displayed`: what it displays;
/// - `deserialize`: what its function `parse` accepts; `deserialize_from_str`: what its `FromStr` accepts.
///
/// ```text
/// text! {
///     EventId: as_str, display, serialize, deserialize;
///     Span: serialize_displayed, deserialize_from_str;
/// }
/// ```
macro_rules! text {
    (@as_str $name:ident) => {
        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
    (@display $name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
    (@borrow $name:ident) => {
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
    (@serialize $name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
    (@serialize_displayed $name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
    (@deserialize $name:ident) => { $crate::board::text::text! { @read $name Self::parse } };
    (@deserialize_from_str $name:ident) => { $crate::board::text::text! { @read $name std::str::FromStr::from_str } };
    (@read $name:ident $parse:expr) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: std::borrow::Cow<'de, str> = serde::Deserialize::deserialize(deserializer)?;
                $parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
    ($($name:ident: $($what:ident),+;)+) => { $($($crate::board::text::text! { @$what $name })+)+ };
}

pub(crate) use text;
