//! One script: its text, its commands, and the keys and arguments of a call.

use redis::{Arg, Cmd, RedisWrite, ToRedisArgs, cmd};

use crate::store::redis::hash_slot::HashSlot;

/// A script, which the server identifies by the SHA-1 of its text.
#[derive(Debug)]
pub(in crate::store::redis) struct Script {
    pub(super) name: &'static str,
    #[cfg(test)]
    pub source: String,
    pub(super) code: String,
    /// The names of the arguments that every call has, in their order. They come before all others.
    pub(super) arguments: Vec<&'static str>,
    /// The number of keys that every call has: the highest one that the text reads. They come before the keys whose
    /// number varies.
    fixed_keys: usize,
    is_repeatable: bool,
    hash: String,
}

/// The keys and arguments of one call of a script.
#[derive(Clone, Debug, Default)]
pub(in crate::store::redis) struct ScriptCall {
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
    /// The names of the first arguments, in debug builds.
    names: Vec<&'static str>,
}

/// Adds the arguments that every call of a script has to a command that is built directly.
pub(in crate::store::redis) struct FixedArguments<'a> {
    command: &'a mut Cmd,
    script: &'static Script,
    added: usize,
}

impl Script {
    /// Returns the script with this text. `arguments` names those that every call has.
    pub(super) fn new(name: &'static str, source: String, arguments: Vec<&'static str>, is_repeatable: bool) -> Self {
        let code = with_positions(&source, &arguments);
        let numbers = code.split("KEYS[").skip(1).filter_map(|rest| rest.split(']').next()?.parse().ok());
        let fixed_keys = numbers.max().unwrap_or_default();
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self {
            name,
            #[cfg(test)]
            source,
            code,
            arguments,
            fixed_keys,
            is_repeatable,
            hash,
        }
    }

    /// Returns the name for log messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the SHA-1 by which the server identifies the script.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the smallest number of keys of a call.
    pub fn fixed_keys(&self) -> usize {
        self.fixed_keys
    }

    /// Returns the number of arguments that every call has.
    pub fn fixed_arguments(&self) -> usize {
        self.arguments.len()
    }

    /// Returns whether the script may be called again when the outcome of the first call is unknown. Some scripts only
    /// read. They also advance, and remove slots that do not exist from the index, but this may be repeated without
    /// harm. The others have the same effect once and twice, and both calls return the same reply, or replies that let
    /// the caller recognize the repetition.
    pub fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// Returns the command that loads the script into a server.
    pub fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(&self.code);
        command
    }

    /// Returns the same call as `command` with the text in place of the hash, for a server that does not have the
    /// script.
    pub fn with_text(&self, command: &Cmd) -> Cmd {
        let mut with_text = cmd("EVAL");
        with_text.arg(&self.code);
        for argument in command.args_iter().skip(2) {
            if let Arg::Simple(argument) = argument {
                with_text.arg(argument);
            }
        }
        with_text
    }

    /// Returns the command that calls the script.
    pub fn command(&self, call: &ScriptCall) -> Cmd {
        debug_assert!(call.keys.len() >= self.fixed_keys, "{} was called with too few keys", self.name);
        debug_assert!(!cfg!(debug_assertions) || call.names == self.arguments, "{} got {:?}", self.name, call.names);
        let size = call.keys.iter().map(String::len).chain(call.arguments.iter().map(Vec::len)).sum::<usize>();
        let mut command = Cmd::with_capacity(3 + call.keys.len() + call.arguments.len(), size + 64);
        command.arg("EVALSHA").arg(&self.hash).arg(call.keys.len()).arg(&call.keys).arg(&call.arguments);
        command
    }
}

impl ScriptCall {
    /// Returns the hash slot of the keys.
    pub fn slot(&self) -> HashSlot {
        HashSlot::of_key(self.keys.first().map_or(b"", String::as_bytes))
    }

    pub fn key(&mut self, key: impl Into<String>) -> &mut Self {
        self.keys.push(key.into());
        self
    }

    /// Adds keys.
    pub fn keys(&mut self, keys: impl IntoIterator<Item = impl Into<String>>) -> &mut Self {
        self.keys.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Adds an argument of the script's list.
    pub fn arg(&mut self, name: &'static str, argument: impl ToString) -> &mut Self {
        if cfg!(debug_assertions) {
            assert_eq!(self.names.len(), self.arguments.len(), "{name} comes after arguments without names");
            self.names.push(name);
        }
        self.more(argument)
    }

    /// Adds an argument that follows those of the list.
    pub fn more(&mut self, argument: impl ToString) -> &mut Self {
        self.raw(argument.to_string().into_bytes())
    }

    /// Adds bytes unchanged, after the arguments of the list.
    pub fn raw(&mut self, argument: Vec<u8>) -> &mut Self {
        self.arguments.push(argument);
        self
    }

    /// Returns the arguments, to which those are added that follow the list.
    pub fn rest(&mut self) -> &mut impl RedisWrite {
        &mut self.arguments
    }

    /// Adds the keys and arguments of another call after those of this one.
    pub fn append(&mut self, mut other: ScriptCall) {
        self.keys.append(&mut other.keys);
        self.names.append(&mut other.names);
        self.arguments.append(&mut other.arguments);
    }

    /// Adds the keys and arguments about a further track. It has the same list of arguments as the first one.
    pub fn further(&mut self, track: ScriptCall) {
        debug_assert_eq!(track.names, self.names);
        self.append(ScriptCall { names: Vec::new(), ..track });
    }

    /// Returns the numbers of keys and of arguments.
    pub fn size(&self) -> (usize, usize) {
        (self.keys.len(), self.arguments.len())
    }

    /// Adds arguments that follow those of the list.
    pub fn all<T: ToString>(&mut self, arguments: impl IntoIterator<Item = T>) -> &mut Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.to_string().into_bytes()));
        self
    }
}

impl<'a> FixedArguments<'a> {
    pub fn new(script: &'static Script, command: &'a mut Cmd) -> Self {
        Self { command, script, added: 0 }
    }

    /// Adds the next argument of the script's list.
    pub fn arg(&mut self, name: &'static str, argument: impl ToRedisArgs) -> &mut Self {
        debug_assert_eq!(self.script.arguments.get(self.added), Some(&name), "{}", self.script.name);
        self.command.arg(argument);
        self.added += 1;
        self
    }

    /// Ends the list, which must be complete, and returns its length.
    pub fn end(&self) -> usize {
        debug_assert_eq!(self.added, self.script.arguments.len(), "{} got too few arguments", self.script.name);
        self.added
    }
}

/// Returns the text with the positions of the arguments in place of their names, and their number in place of
/// `FIXED_ARGUMENTS`. An unknown name is left, and a test finds it.
fn with_positions(source: &str, arguments: &[&str]) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("ARGV.").into_iter().chain(rest.find("argv.")).min() {
        let (before, name) = rest.split_at(at + "ARGV.".len());
        let end = name.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        match arguments.iter().position(|argument| *argument == name) {
            Some(place) => code.push_str(&format!("{}[{}]", &before[..before.len() - 1], place + 1)),
            None => code.extend([before, name]),
        }
        rest = after;
    }
    code.push_str(rest);
    code.replace("FIXED_ARGUMENTS", &arguments.len().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_positions() {
        let code =
            with_positions("ARGV.a, ARGV.ab, argv.b_c; ARGV.no; #ARGV - FIXED_ARGUMENTS; ARGV[i]", &["ab", "a", "b_c"]);
        assert_eq!(code, "ARGV[2], ARGV[1], argv[3]; ARGV.no; #ARGV - 3; ARGV[i]");
    }
}
