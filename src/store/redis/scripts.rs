//! The Lua scripts, each in its own file headed by its contract.

use std::sync::LazyLock;

use redis::{Cmd, cmd};

/// A script as the server knows it: by the SHA-1 of its text.
#[derive(Debug)]
pub(super) struct Script {
    name: &'static str,
    code: &'static str,
    hash: String,
}

/// Keys and arguments of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Script {
    fn new(name: &'static str, code: &'static str) -> Self {
        let hash = redis::Script::new(code).get_hash().to_owned();
        Self { name, code, hash }
    }

    /// What it is called in messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the server calls it.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The command that makes the script known to a server.
    pub fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(self.code);
        command
    }

    /// A call of it.
    pub fn command(&self, call: &Call) -> Cmd {
        let size = call.keys.iter().map(String::len).chain(call.arguments.iter().map(Vec::len)).sum::<usize>();
        let mut command = Cmd::with_capacity(3 + call.keys.len() + call.arguments.len(), size + 64);
        command.arg("EVALSHA").arg(&self.hash).arg(call.keys.len()).arg(&call.keys).arg(&call.arguments);
        command
    }
}

impl Call {
    pub fn key(&mut self, key: impl Into<String>) -> &mut Self {
        self.keys.push(key.into());
        self
    }

    pub fn arg(&mut self, argument: impl ToString) -> &mut Self {
        self.arguments.push(argument.to_string().into_bytes());
        self
    }

    pub fn args<T: ToString>(&mut self, arguments: impl IntoIterator<Item = T>) -> &mut Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.to_string().into_bytes()));
        self
    }
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $constant:ident = $name:literal after [$($before:literal),*];)*) => {
        $($(#[$doc])* pub(super) static $constant: LazyLock<Script> = LazyLock::new(|| {
            Script::new($name, concat!(
                $(include_str!(concat!("lua/", $before, ".lua")), "\n",)*
                include_str!(concat!("lua/", $name, ".lua"))
            ))
        });)*

        #[cfg(test)]
        fn all() -> Vec<&'static Script> {
            vec![$(&$constant),*]
        }
    };
}

scripts! {
    WRITE = "write" after ["clock", "board"];
    PAGE = "page" after ["clock", "board"];
    NEIGHBORS = "neighbors" after ["clock", "board"];
    LOOKUP = "lookup" after ["clock", "board"];
    STANDING = "standing" after ["clock", "board"];
    STATUS = "status" after ["clock", "board"];
    REMOVE = "remove" after ["clock", "board"];
    RETIRE = "retire" after ["clock", "board"];
    AUDIT = "audit" after ["clock", "board"];
    UNDEFINE = "undefine" after ["clock", "board"];
    DEFINE = "define" after ["clock"];
    SET_CLOCK = "set_clock" after [];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_states_its_contract() {
        for script in all() {
            let own = script.code.rsplit_once("\n\n--").map_or(script.code, |_| script.code);
            for part in ["-- KEYS ", "-- ARGV ", "-- reply ", "-- cost ", "-- why a script:"] {
                assert!(own.contains(part), "{}.lua does not say: {part}", script.name);
            }
            assert!(!script.code.contains("'KEYS'") && !script.code.contains("'SCAN'"), "{}", script.name);
        }
    }
}
