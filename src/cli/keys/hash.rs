//! `rolltop keys hash`: makes a key for the configuration, without a server.

use std::io::{self, IsTerminal, Read};

use anyhow::bail;

use crate::access::{KeyKind, Secret};
use crate::cli::output::say;

/// Make a key for the configuration file, without a server
///
/// Prints a new key to standard error and the table for the configuration file, which has only a hash of it, to
/// standard output. Given a key on standard input, prints the table for that key.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct HashArgs {
    /// What the key is for
    #[arg(long, default_value = "the first key")]
    name: String,
    /// What the key allows
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "admin")]
    scopes: Vec<crate::access::Scope>,
    /// Read a key from standard input instead of making one
    #[arg(long)]
    stdin: bool,
}

pub(super) fn run(args: &HashArgs) -> anyhow::Result<()> {
    let secret = match args.stdin {
        true => given(&mut io::stdin().lock())?,
        false => Secret::draw(KeyKind::Secret)?,
    };
    if !args.stdin {
        // To standard error, so that it is seen where the table goes into a file.
        eprintln!("The key, which is stored nowhere and not shown again:\n\n  {}\n", secret.reveal());
        if io::stdout().is_terminal() {
            eprintln!("For the configuration file:\n");
        }
    }
    // The file that it is added to may not end with a line break.
    say!("\n{}", table(&secret, args))?;
    Ok(())
}

fn given(input: &mut impl Read) -> anyhow::Result<Secret> {
    let mut text = String::new();
    // Longer than any key.
    input.take(1_024).read_to_string(&mut text)?;
    match Secret::parse(text.trim()) {
        Ok(secret) if secret.kind() == KeyKind::Secret => Ok(secret),
        Ok(_) => bail!("a publishable key is made with POST /v1/keys"),
        // The text may be a secret of something else, so it is not quoted.
        Err(error) => bail!("standard input: {error}"),
    }
}

fn table(secret: &Secret, args: &HashArgs) -> String {
    let scopes: Vec<toml::Value> = args.scopes.iter().map(|scope| scope.as_str().into()).collect();
    let (name, scopes) = (toml::Value::from(args.name.clone()), toml::Value::from(scopes));
    format!("[[keys]]\nid = \"{}\"\nhash = \"{}\"\nname = {name}\nscopes = {scopes}", secret.id(), secret.hash())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;
    use crate::config::{Config, Settings};

    #[test]
    fn the_table_is_one_of_the_configuration() {
        let secret = Secret::draw(KeyKind::Secret).unwrap();
        let args = HashArgs { name: "a \"b\"".to_owned(), scopes: vec![Scope::Read, Scope::Write], stdin: false };
        let text = table(&secret, &args);
        assert!(!text.contains(&secret.reveal()[20..]));
        let config = Config::from_text("f", &text, Settings::default()).unwrap();
        let key = &config.keys.keys[0];
        assert_eq!((key.id, key.name.as_str(), key.secrets[0].hash), (secret.id(), "a \"b\"", secret.hash()));
        assert!(key.grant.scopes.allows(Scope::Write) && !key.grant.scopes.allows(Scope::Admin));
        let given = given(&mut format!("{}\n", secret.reveal()).as_bytes()).unwrap();
        assert_eq!(table(&given, &args), text);
        assert!(super::given(&mut &b"hunter2"[..]).unwrap_err().to_string().contains("standard input"));
    }
}
