//! Enums of which each variant is spelled in one way.

/// Adds to an enum what follows from the spellings of its variants, which it lists once:
///
/// - `all NAME`: a constant with all variants, in the order of the list;
/// - `print name`: a function that returns the spelling of a variant;
/// - `parse name`: a function that returns the variant with a spelling, if there is one.
///
/// ```text
/// spellings! {
///     Unit { Second = "s", Minute = "m" }
///     /// Returns the unit as it is written after a number.
///     pub print suffix;
///     parse of_suffix;
/// }
/// ```
macro_rules! spellings {
    (@all { $($variant:ident = $word:literal),+ } $(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        $vis const $name: [Self; [$($word),+].len()] = [$(Self::$variant),+];
    };
    (@print { $($variant:ident = $word:literal),+ } $(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        $vis const fn $name(self) -> &'static str {
            match self { $(Self::$variant => $word),+ }
        }
    };
    (@parse { $($variant:ident = $word:literal),+ } $(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        $vis fn $name(text: &str) -> Option<Self> {
            match text { $($word => Some(Self::$variant),)+ _ => None }
        }
    };
    ($enum:ident $list:tt $($(#[$doc:meta])* $vis:vis $what:ident $name:ident;)+) => {
        impl $enum { $(spellings! { @$what $list $(#[$doc])* $vis $name })+ }
    };
}

pub(crate) use spellings;
