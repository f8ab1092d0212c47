//! Fingerprints: 16-byte keyed hashes of a subject and an event id.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::board::{EventId, Subject};

/// The key of a store's fingerprints, chosen at random when the store is created, and written to its manifest.
///
/// Without the key it is not possible to construct two ids with the same fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FingerprintKey(pub u64, pub u64);

/// A fingerprint of a subject and an id. The probability that any two of a billion are equal is less than 10^-20.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Fingerprint(pub u128);

impl FingerprintKey {
    /// Creates a random key.
    pub(super) fn random() -> Self {
        Self(rand::random(), rand::random())
    }

    /// Returns the fingerprint of a subject and an id: the SipHash-2-4-128 of both with a newline between them. Neither
    /// can contain a newline.
    pub(super) fn of(self, subject: &Subject, id: &EventId) -> Fingerprint {
        self.of_parts(&[subject.as_str().as_bytes(), b"\n", id.as_str().as_bytes()])
    }

    fn of_parts(self, parts: &[&[u8]]) -> Fingerprint {
        let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
        parts.iter().for_each(|part| hasher.write(part));
        Fingerprint(hasher.finish128().as_u128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the vectors of the reference implementation: the key is the bytes 0 to 15, the text the bytes from
    /// 0 on.
    #[test]
    fn fingerprints_match_the_reference_vectors() {
        let key = FingerprintKey(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908);
        let bytes = |fingerprint: Fingerprint| fingerprint.0.to_le_bytes();
        let empty = 0xa381_7f04_ba25_a8e6_6df6_7214_c755_0293_u128.to_be_bytes();
        let one = 0xda87_c1d8_6b99_af44_3476_5911_9b22_fc45_u128.to_be_bytes();
        assert_eq!(bytes(key.of_parts(&[])), empty);
        assert_eq!(bytes(key.of_parts(&[&[0]])), one);
    }

    #[test]
    fn a_fingerprint_depends_on_subject_id_and_key() {
        let of = |key: FingerprintKey, subject: &str, id: &str| {
            key.of(&Subject::parse(subject).unwrap(), &EventId::parse(id).unwrap())
        };
        let key = FingerprintKey::random();
        assert_ne!(key, FingerprintKey::random());
        assert_eq!(of(key, "a", "bc"), of(key, "a", "bc"));
        assert_eq!(of(key, "a", "bc"), key.of_parts(&[b"a\nbc"]));
        for other in [of(key, "ab", "c"), of(key, "a", "bd"), of(FingerprintKey::random(), "a", "bc")] {
            assert_ne!(other, of(key, "a", "bc"));
        }
    }
}
