//! Scripts about tracks of two editions. Each of them may have any form, so there is a script for each pair of forms,
//! which is assembled when it is first needed.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::script::Script;

/// The texts of functions, without their first line: each returns one track of an edition, as `change` uses it.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct TrackTexts {
    pub main: &'static str,
    /// That of each further track.
    pub further: &'static str,
}

/// A script, and the addresses of the texts of two editions. The texts are constants, of which there are few.
type Key = (&'static str, [(usize, usize); 2]);

static ASSEMBLED: LazyLock<Mutex<HashMap<Key, &'static Script>>> = LazyLock::new(Mutex::default);

/// Returns the script that applies changes in two editions, the current one first.
pub(super) fn change(arguments: &[&'static str], editions: [TrackTexts; 2]) -> &'static Script {
    assembled("change", include_str!("../lua/change.lua"), arguments, editions)
}

/// Returns the script that gives what subjects have in a track of one edition to a track of the other one.
pub(super) fn fill(arguments: &[&'static str], tracks: [TrackTexts; 2]) -> &'static Script {
    assembled("fill", include_str!("../lua/fill.lua"), arguments, tracks)
}

/// Returns a script that was assembled before, or assembles it. Scripts are kept as long as the process runs: there are
/// some hundred pairs at most, and a store has boards of few of them.
fn assembled(
    name: &'static str,
    text: &'static str,
    arguments: &[&'static str],
    editions: [TrackTexts; 2],
) -> &'static Script {
    let addresses = editions.map(|texts| (texts.main.as_ptr().addr(), texts.further.as_ptr().addr()));
    let assemble = || &*Box::leak(Box::new(assemble(name, text, arguments, &editions)));
    ASSEMBLED.lock().entry((name, addresses)).or_insert_with(assemble)
}

fn assemble(name: &'static str, text: &'static str, arguments: &[&'static str], editions: &[TrackTexts; 2]) -> Script {
    let mut texts: Vec<&'static str> = Vec::new();
    let mut source = String::new();
    let mut function_of = |text: &'static str| {
        let known = texts.iter().position(|known| std::ptr::eq(*known, text));
        let number = known.unwrap_or_else(|| {
            source.push_str(&format!("local function track_of_{}(KEYS, ARGV)\n{text}", texts.len()));
            texts.push(text);
            texts.len() - 1
        });
        format!("track_of_{number}")
    };
    let forms = editions.map(|TrackTexts { main, further }| {
        let (main, further) = (function_of(main), function_of(further));
        format!("{{main = {main}, further = {further}}}")
    });
    source.push_str(&format!("local forms = {{{}}}\n\n", forms.join(", ")));
    source.push_str(concat!(include_str!("../lua/tracks.lua"), "\n"));
    source.push_str(text);
    Script::new(name, source.leak(), 5, arguments, false)
}
