//! Decimal numbers, exactly.

/// The largest one, in bytes.
const MAX_DECIMAL: usize = 128;

/// Returns a decimal number, whose digits are a two's complement number of these bytes.
pub fn decimal(bytes: &[u8], scale: usize) -> Result<String, String> {
    if bytes.len() > MAX_DECIMAL {
        return Err(format!("a decimal number has more than {MAX_DECIMAL} bytes"));
    }
    let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let mut left = bytes.to_vec();
    if is_negative {
        let mut carry = true;
        for byte in left.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    for at in 0.. {
        if at > scale && left.iter().all(|byte| *byte == 0) {
            break;
        }
        if at == scale && scale > 0 {
            digits.push(b'.');
        }
        let mut remainder = 0_u16;
        for byte in &mut left {
            let part = remainder << 8 | u16::from(*byte);
            *byte = (part / 10) as u8;
            remainder = part % 10;
        }
        digits.push(b'0' + remainder as u8);
    }
    digits.extend(is_negative.then_some(b'-'));
    Ok(digits.iter().rev().map(|digit| char::from(*digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (number, scale, expected) in [
            (&[][..], 0, "0"),
            (&[0], 2, "0.00"),
            (&[5], 2, "0.05"),
            (&[0xfb], 1, "-0.5"),
            (&[0x80], 0, "-128"),
            (&[0xff, 0x7f], 0, "-129"),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 3, "340282366920938463463374607431768211.456"),
            (&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0, "-43556142965880123323311949751266331066368"),
        ] {
            assert_eq!(decimal(number, scale).as_deref(), Ok(expected), "{number:?}");
        }
        assert!(decimal(&[1; MAX_DECIMAL + 1], 0).is_err());
    }
}
