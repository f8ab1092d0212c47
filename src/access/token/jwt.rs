//! The form of a JWT in compact serialization (RFC 7515), and its header.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::members::{Members, text_of};
use super::{Claims, TokenError, Verifier};

/// The longest token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 4_096;

/// A token of which nothing is known but its form and its header.
#[derive(Debug)]
pub struct UnverifiedToken<'a> {
    kid: String,
    algorithm: String,
    /// The header and the claims, as they were sent, which the signature is of.
    signed: &'a str,
    claims: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token. O(length); verifies nothing.
    ///
    /// Members of the header other than `alg`, `kid` and `typ` are refused: `crit` because nothing critical is known
    /// here, `jku`, `jwk` and `x5…` because a token must not bring the key that verifies it.
    pub fn parse(text: &'a str) -> Result<Self, TokenError> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Form)?;
        // The alphabet has no dot, so there are no more parts.
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Form);
        let (header, claims, signature) = (decoded(header)?, decoded(claims)?, decoded(signature)?);
        let (kid, algorithm) = parse_header(&header).ok_or(TokenError::Header)?;
        Ok(Self { kid, algorithm, signed, claims, signature })
    }

    /// Returns the id of the signing key that the token names.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the name of the algorithm that the token names.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// Returns the text of the claims, which may be wrong.
    pub fn claims(&self) -> &[u8] {
        &self.claims
    }

    /// Verifies the signature with the key that has this [`kid`](Self::kid), and parses the claims.
    pub fn verify(&self, verifier: &Verifier) -> Result<Claims, TokenError> {
        if self.algorithm != verifier.algorithm() {
            return Err(TokenError::Algorithm);
        }
        if !verifier.verifies(self.signed.as_bytes(), &self.signature) {
            return Err(TokenError::Signature);
        }
        Claims::parse(&self.claims)
    }
}

/// Returns `kid` and `alg` of a header.
fn parse_header(header: &[u8]) -> Option<(String, String)> {
    let mut members = Members::parse(std::str::from_utf8(header).ok()?)?;
    let (algorithm, kid) = (text_of(members.take("alg")?)?, text_of(members.take("kid")?)?);
    let is_jwt = match members.take("typ") {
        Some(typ) => text_of(typ)?.eq_ignore_ascii_case("JWT"),
        None => true,
    };
    (is_jwt && members.unknown().is_none()).then(|| (kid.into_owned(), algorithm.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::token::HmacSecret;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn signed(header: &str, claims: &str) -> String {
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = HmacSecret::new(SECRET).unwrap().sign(text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn header(header: &str) -> Result<String, TokenError> {
        UnverifiedToken::parse(&signed(header, "{}")).map(|token| token.kid)
    }

    #[test]
    fn a_header_has_an_algorithm_and_a_kid() {
        for right in [r#"{"alg":"HS256","kid":"k"}"#, r#"{"typ":"jwt","kid":"k","alg":"HS256"}"#] {
            assert_eq!(header(right).as_deref(), Ok("k"), "{right}");
        }
        for wrong in [
            r#"{"alg":"HS256"}"#,
            r#"{"kid":"k"}"#,
            r#"{"alg":"HS256","kid":5}"#,
            r#"{"alg":null,"kid":"k"}"#,
            r#"{"alg":"HS256","kid":"k","kid":"l"}"#,
            r#"{"alg":"HS256","kid":"k","typ":"JOSE"}"#,
            r#"{"alg":"HS256","kid":"k","crit":[]}"#,
            r#"{"alg":"HS256","kid":"k","crit":null}"#,
            r#"{"alg":"HS256","kid":"k","jku":"https://evil.example"}"#,
            r#"{"alg":"HS256","kid":"k","jwk":{}}"#,
            r#"{"alg":"HS256","kid":"k","x5c":[]}"#,
            r#"{"alg":"HS256","kid":"k","b64":false}"#,
            r#"["HS256","k"]"#,
            "",
            "{",
        ] {
            assert_eq!(header(wrong), Err(TokenError::Header), "{wrong}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        let token = signed(r#"{"alg":"HS256","kid":"k"}"#, "{}");
        let parts: Vec<&str> = token.split('.').collect();
        for wrong in [
            String::new(),
            "..".to_owned(),
            "a.b.c".to_owned(),
            format!("{token}="),
            format!("{token}.{token}"),
            format!("{token}\n"),
            parts[..2].join("."),
            format!("{}.{}.{}.", parts[0], parts[1], parts[2]),
            // The last character has bits that stand for nothing.
            format!("{}.{}.{}", parts[0], parts[1], "AB"),
        ] {
            assert!(matches!(UnverifiedToken::parse(&wrong), Err(TokenError::Form | TokenError::Header)), "{wrong}");
        }
        let long = signed(r#"{"alg":"HS256","kid":"k"}"#, &"x".repeat(4_000));
        assert_eq!(UnverifiedToken::parse(&long).err(), Some(TokenError::TooLong));
    }

    #[test]
    fn a_signature_is_of_header_and_claims() {
        let verifier = Verifier::from(HmacSecret::new(SECRET).unwrap());
        let verify = |text: &str| UnverifiedToken::parse(text).and_then(|token| token.verify(&verifier).map(drop));
        let claims = r#"{"aud":"a","exp":1,"rolltop":{"scopes":["view"]}}"#;
        let token = signed(r#"{"alg":"HS256","kid":"k"}"#, claims);
        assert_eq!(verify(&token), Ok(()));
        let (of, signature) = token.rsplit_once('.').unwrap();
        let other = signed(r#"{"alg":"HS256","kid":"k"}"#, &claims.replace("\"a\"", "\"b\""));
        let (of_other, _) = other.rsplit_once('.').unwrap();
        for forged in [format!("{of_other}.{signature}"), format!("{of}."), format!("{of}.{}", "A".repeat(43))] {
            assert_eq!(verify(&forged), Err(TokenError::Signature), "{forged}");
        }
        for algorithm in ["none", "None", "HS512", "RS256", "EdDSA", "hs256", ""] {
            let token = signed(&format!(r#"{{"alg":"{algorithm}","kid":"k"}}"#), claims);
            assert_eq!(verify(&token), Err(TokenError::Algorithm), "{algorithm}");
        }
    }
}
