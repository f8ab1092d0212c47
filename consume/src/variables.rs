//! Environment variables in the texts of the configuration.

use anyhow::Context;

/// Replaces `${NAME}` by the environment variable of that name: secrets do not belong in files that people share.
pub fn with_variables(text: &str) -> anyhow::Result<String> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').context("a '${' has no '}' after it")?;
        out.push_str(before);
        out.push_str(&std::env::var(name).with_context(|| format!("the environment variable {name} is not set"))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(with_variables("a${PATH}b").unwrap(), format!("a{path}b"));
        assert_eq!(with_variables("a").unwrap(), "a");
        for text in ["${", "${NO_SUCH_VARIABLE_HERE}"] {
            assert!(with_variables(text).is_err());
        }
    }
}
