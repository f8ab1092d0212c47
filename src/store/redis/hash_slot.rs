//! The hash slots of a Redis Cluster. Each key belongs to one of the 16,384 hash slots, and each hash slot to a node.
//!
//! The rule is that of the [cluster
//! specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/): the CRC-16/XMODEM of the
//! key, or of its hash tag if it has one, modulo 16,384.

use std::fmt;

use redis::{Arg, Cmd};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HashSlot(u16);

impl HashSlot {
    /// The number of hash slots.
    pub const COUNT: u16 = 16_384;

    /// Returns the hash slot with this number, or `None` from [`COUNT`](Self::COUNT) on.
    #[cfg(test)]
    pub fn new(number: u16) -> Option<Self> {
        (number < Self::COUNT).then_some(Self(number))
    }

    /// Returns the hash slot of a key.
    pub fn of_key(key: &[u8]) -> Self {
        Self(crc16(hash_tag(key)) % Self::COUNT)
    }

    /// Returns the hash slot of the first key of a command, which is not a call of a script. A command without keys has
    /// that of an empty key.
    pub fn of_command(command: &Cmd) -> Self {
        match command.args_iter().nth(1) {
            Some(Arg::Simple(key)) => Self::of_key(key),
            _ => Self::of_key(b""),
        }
    }

    /// Returns the number of the hash slot, below [`COUNT`](Self::COUNT).
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for HashSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the bytes of a key that are hashed: those between the first `{` and the first `}` after it. If there are no
/// such braces, or nothing between them, the whole key is hashed.
fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let inside = &key[open + 1..];
    match inside.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &inside[..close],
    }
}

/// Returns the CRC-16/XMODEM: polynomial 0x1021, initial value 0, nothing reflected.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The CRC of each byte.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_matches_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
        assert_eq!(TABLE[..4], [0, 0x1021, 0x2042, 0x3063]);
        assert_eq!(TABLE[255], 0x1ef0);
    }

    /// The expected values are those of `CLUSTER KEYSLOT` in Redis 7.0.15. The first lines are also in its
    /// documentation.
    #[test]
    fn hash_slots_match_cluster_keyslot() {
        for (key, slot) in [
            ("somekey", 11_058),
            ("foo{hash_tag}", 2_515),
            ("bar{hash_tag}", 2_515),
            ("123456789", 12_739),
            ("{user1000}.following", 3_443),
            ("{user1000}.followers", 3_443),
            ("user1000", 3_443),
            ("foo", 12_182),
            ("bar", 5_061),
            ("hello", 866),
            ("hot-posts", 8_391),
            ("rolltop:1:{hot-posts}:meta", 8_391),
            ("", 0),
            ("日本語", 12_788),
        ] {
            assert_eq!(HashSlot::of_key(key.as_bytes()).number(), slot, "{key}");
        }
    }

    /// The cases of the specification, with the values of the same server.
    #[test]
    fn the_hash_tag_is_between_the_first_pair_of_braces() {
        for (key, tag, slot) in [
            ("foo{}{bar}", "foo{}{bar}", 8_363),
            ("foo{{bar}}zap", "{bar", 4_015),
            ("foo{bar}{zap}", "bar", 5_061),
            ("{}", "{}", 15_257),
            ("{", "{", 4_092),
            ("foo{bar", "foo{bar", 15_278),
            ("a}b{c}", "c", 7_365),
        ] {
            assert_eq!(hash_tag(key.as_bytes()), tag.as_bytes(), "{key}");
            assert_eq!(HashSlot::of_key(key.as_bytes()).number(), slot, "{key}");
        }
    }

    #[test]
    fn a_command_has_the_hash_slot_of_its_key() {
        let mut command = redis::cmd("HMGET");
        assert_eq!(HashSlot::of_command(&command), HashSlot::of_key(b""));
        command.arg("bar{hash_tag}").arg("foo");
        assert_eq!(HashSlot::of_command(&command).number(), 2_515);
    }

    #[test]
    fn hash_slot_numbers_are_limited_to_16383() {
        assert_eq!(HashSlot::new(16_383).map(|slot| slot.to_string()).as_deref(), Some("16383"));
        assert_eq!(HashSlot::new(16_384), None);
    }
}
