//! The declaration of an item, and the parsing of one JSON object field by field.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::item_error::{ItemError, UnexpectedField};
use crate::http::codes::ItemCode;

/// The fields of one JSON object, not yet validated. Values borrow from the body. [`item!`] declares such a type.
pub(in crate::http) trait Item<'a>: Default {
    /// Key of the list of items in a batch.
    const LIST: &'static str;
    /// Names of the fields, for messages.
    const FIELDS: &'static [&'static str];
    /// Code of an element that is not an object, or repeats a field.
    const INVALID: ItemCode;

    /// Reads the value of the named field. Returns the field if the item must not have it.
    fn read_value<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<UnexpectedField>, A::Error>;

    /// Returns whether all fields are absent.
    fn is_empty(&self) -> bool;
}

/// Declares a type of items once: from its fields follow how it is parsed and what the API's document says about it.
///
/// The comments are those of the document, and `schema` attributes are as for `derive(ToSchema)`. The type of a field
/// implements [`FieldValue`](super::FieldValue), and `as` gives its name in JSON if that cannot be the field's. Below
/// the item, with the same visibility, stand the types that only the document needs: a body with one item or a batch,
/// and a batch, whose field is the key of the list. `invalid` is [`Item::INVALID`].
macro_rules! item {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (
        $(#[$about_item:meta])*
        $visible:vis struct $item:ident<$a:lifetime> {
            $($(#[$about_field:meta])* $field:ident $(as $name:literal)?: $kind:ty,)+
        }
        $(#[$about_body:meta])*
        enum $body:ident;
        $(#[$about_batch:meta])*
        struct $batch:ident {
            $(#[$about_list:meta])*
            $list:ident
        }
        invalid: $invalid:expr
    ) => {
        #[derive(Default, utoipa::ToSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$about_item])*
        $visible struct $item<$a> {
            $($(#[$about_field])* $(#[schema(rename = $name)])? $field: $kind,)+
        }

        impl<$a> $crate::http::items::item::Item<$a> for $item<$a> {
            const LIST: &'static str = stringify!($list);
            const FIELDS: &'static [&'static str] = &[$($crate::http::items::item::item!(@name $field $($name)?)),+];
            const INVALID: $crate::http::codes::ItemCode = $invalid;

            fn read_value<A: serde::de::MapAccess<$a>>(
                &mut self,
                name: &str,
                map: &mut A,
            ) -> Result<Option<$crate::http::items::item_error::UnexpectedField>, A::Error> {
                let (name, is_repeated) = match name {
                    $($crate::http::items::item::item!(@name $field $($name)?) => (
                        $crate::http::items::item::item!(@name $field $($name)?),
                        $crate::http::items::field::FieldValue::fill(&mut self.$field, map)?,
                    ),)+
                    other => return $crate::http::items::item::skip_unknown(other, map),
                };
                Ok(is_repeated.then_some($crate::http::items::item_error::UnexpectedField::Repeated(name)))
            }

            fn is_empty(&self) -> bool {
                true $(&& $crate::http::items::field::FieldValue::is_absent(&self.$field))+
            }
        }

        #[derive(utoipa::ToSchema)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "schema only; `parse_body` splits bodies without copying")]
        $(#[$about_body])*
        $visible enum $body {
            One($item<'static>),
            Many($batch),
        }

        #[derive(utoipa::ToSchema)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "schema only; `parse_body` splits bodies without copying")]
        $(#[$about_batch])*
        $visible struct $batch {
            $(#[$about_list])*
            #[schema(max_items = 100000)]
            $list: Vec<$item<'static>>,
        }
    };
}
pub(in crate::http) use item;

/// An item with the first field that it must not have.
#[derive(Default)]
pub(super) struct Parsed<I> {
    item: I,
    unexpected: Option<UnexpectedField>,
}

/// The name of a field; borrowed unless it contains escapes.
pub(in crate::http) struct FieldName<'a>(pub(in crate::http) Cow<'a, str>);

impl<'a, I: Item<'a>> Parsed<I> {
    /// Reads one field of the item, expected or not.
    pub(super) fn read_field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        if let Some(field) = self.item.read_value(name, map)? {
            self.unexpected.get_or_insert(field);
        }
        Ok(())
    }

    /// Returns whether the object has no fields.
    pub(super) fn is_empty(&self) -> bool {
        self.item.is_empty() && self.unexpected.is_none()
    }

    /// Returns the item, unless it has a field that it must not have.
    pub(super) fn into_item(self) -> Result<I, ItemError> {
        match self.unexpected {
            None => Ok(self.item),
            Some(field) => Err(ItemError::unexpected(field, I::FIELDS, I::INVALID)),
        }
    }
}

/// Skips the value of an unknown field, and returns the field.
pub(in crate::http) fn skip_unknown<'a, A: MapAccess<'a>>(
    name: &str,
    map: &mut A,
) -> Result<Option<UnexpectedField>, A::Error> {
    map.next_value::<IgnoredAny>()?;
    Ok(Some(UnexpectedField::Unknown(name.chars().take(64).collect())))
}

/// Fills the item in place: one that was returned would be copied by each level of the parser.
impl<'de, I: Item<'de>> Visitor<'de> for &mut Parsed<I> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}", I::FIELDS.join(", "))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(FieldName(name)) = map.next_key()? {
            self.read_field(&name, &mut map)?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for FieldName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = FieldName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowed)
    }
}
