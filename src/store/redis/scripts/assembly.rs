//! Assembles a script from the texts of its files, as their heads say.

use super::script::Script;

/// The form of a track: the parts of scripts that are about its data. The first one says how cells combine.
pub(in crate::store::redis) type Form = &'static [&'static str];

/// The forms of the tracks of an edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store::redis) struct EditionForms {
    pub main: Form,
    /// That of each further track.
    pub further: Form,
}

impl EditionForms {
    /// Returns those of an edition all of whose tracks have the same form.
    pub const fn alike(form: Form) -> Self {
        Self { main: form, further: form }
    }
}

/// The name and the text of each file.
pub(super) struct Files(pub &'static [(&'static str, &'static str)]);

/// Parts, in the order in which their texts come.
struct Parts<'a> {
    files: &'a Files,
    form: Form,
    begun: Vec<&'static str>,
    added: Vec<&'static str>,
}

impl Files {
    /// Returns the text of a file.
    pub fn text(&self, name: &str) -> &'static str {
        let file = self.0.iter().find(|(file, _)| *file == name);
        file.map_or_else(|| panic!("there is no {name}.lua"), |(_, text)| text)
    }

    /// Assembles the script of this name for tracks of these forms, for each edition.
    pub fn assembled(&self, name: &'static str, editions: &[EditionForms]) -> Script {
        let text = self.text(name);
        let mut source = self.functions(text, editions);
        source.push_str(&self.parts(text, "include", editions[0].main));
        source.push_str(text);
        Script::new(name, source, self.arguments(text), text.lines().any(|line| line == "--- @repeatable"))
    }

    /// Returns the functions that return one track from its keys and arguments, one for each form, and the list of those
    /// of each edition. Returns nothing for a script that is not about several tracks.
    fn functions(&self, text: &'static str, editions: &[EditionForms]) -> String {
        let mut source = String::new();
        if listed(text, "each_track").next().is_none() {
            return source;
        }
        let mut known: Vec<Form> = Vec::new();
        let mut function_of = |form: Form| {
            let number = known.iter().position(|known| *known == form).unwrap_or_else(|| {
                let (number, body) = (known.len(), self.parts(text, "each_track", form));
                source += &format!("local function track_of_{number}(KEYS, ARGV)\n{body}return track\nend\n\n");
                known.push(form);
                number
            });
            format!("track_of_{number}")
        };
        let forms = editions.iter().map(|EditionForms { main, further }| {
            let (main, further) = (function_of(main), function_of(further));
            format!("{{main = {main}, further = {further}}}")
        });
        let forms = forms.collect::<Vec<_>>().join(", ");
        source + &format!("local forms = {{{forms}}}\n\n")
    }

    /// Returns the texts of the parts that lines of this word list, and of what they include. `form` and `cells` stand
    /// for parts of this form.
    fn parts(&self, text: &'static str, word: &str, form: Form) -> String {
        let mut parts = Parts { files: self, form, begun: Vec::new(), added: Vec::new() };
        listed(text, word).for_each(|name| parts.add(name));
        parts.added.iter().flat_map(|name| [self.text(name), "\n"]).collect()
    }

    /// Returns the names of the arguments that the head of a file lists.
    fn arguments(&self, text: &'static str) -> Vec<&'static str> {
        let named = |name: &'static str| match name.strip_suffix(".lua") {
            Some(file) => self.arguments(self.text(file)),
            None => vec![name],
        };
        listed(text, "arguments").flat_map(named).collect()
    }
}

impl Parts<'_> {
    /// Adds a part, unless it was added before, after those that it includes.
    fn add(&mut self, name: &'static str) {
        match name {
            "form" => self.form.iter().for_each(|part| self.add(part)),
            "cells" => self.add(self.form[0]),
            _ if self.begun.contains(&name) => assert!(self.added.contains(&name), "{name}.lua includes itself"),
            _ => {
                self.begun.push(name);
                listed(self.files.text(name), "include").for_each(|part| self.add(part));
                self.added.push(name);
            }
        }
    }
}

/// Returns the names that lines of this word list in the head of a file.
pub(super) fn listed(text: &'static str, word: &str) -> impl Iterator<Item = &'static str> {
    let lines = text.lines().filter_map(move |line| line.strip_prefix("--- @")?.strip_prefix(word)?.strip_prefix(' '));
    lines.flat_map(|names| names.split(", "))
}
