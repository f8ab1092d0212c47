//! Paths of requests, from names that may have any characters.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{Error, Result};

/// All characters but those that RFC 3986 calls unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the path of a board, or of something of it: `/v1/boards/hot-posts/subjects/post%2F1`.
///
/// # Errors
///
/// `invalid_name` for a name that is empty, or that URLs take for a folder: `.` and `..`, also percent-encoded.
pub(crate) fn of_board(parts: &[&str]) -> Result<String> {
    let mut path = String::from("/v1/boards");
    for &part in parts {
        if matches!(part, "" | "." | "..") {
            return Err(Error::invalid_name(format!("'{part}' cannot be a name in the address of a request")));
        }
        path.push('/');
        path.extend(utf8_percent_encode(part, ENCODED));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded() {
        assert_eq!(of_board(&["hot-posts"]).unwrap(), "/v1/boards/hot-posts");
        assert_eq!(
            of_board(&["b", "subjects", "a/b ?#%é..", "window"]).unwrap(),
            "/v1/boards/b/subjects/a%2Fb%20%3F%23%25%C3%A9../window"
        );
    }

    #[test]
    fn names_that_an_address_cannot_carry_are_refused() {
        for name in ["", ".", ".."] {
            assert_eq!(of_board(&["b", "subjects", name]).unwrap_err().code(), "invalid_name");
            assert_eq!(of_board(&[name]).unwrap_err().code(), "invalid_name");
        }
    }
}
