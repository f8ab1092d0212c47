//! The structure of `src`: layers import only from layers below, and the modules of some folders have no circular
//! imports.
//!
//! Imports are read from the source text: `use` statements and paths that start with `crate`, `super` or `self`.
//! Comments, strings and test modules are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The layers from bottom to top. A module belongs to the layer with the longest matching prefix. It may import from
/// its own layer and from the ones on earlier lines.
const LAYERS: &[&[&str]] = &[
    &["board"],
    &["access"],
    &["store"],
    &["store::redis", "store::embedded"],
    &["service"],
    &["http"],
    &["config"],
    &["descriptors", "telemetry", "tls"],
    &["app"],
    &["cli"],
];

/// Imports that are not allowed although they point downward: (importer, imported).
const SEPARATE: &[(&str, &str)] = &[("http", "store"), ("service", "store::redis"), ("service", "store::embedded")];

/// Folders whose modules must not import each other in a circle.
const FREE_OF_CIRCLES: &[&str] = &["board::language", "board::rule", "store::embedded", "store::redis", "http", "cli"];

/// The imports of each module: paths such as `http::items::stream`, without `crate`.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn layers_import_only_from_layers_below() {
    let graph = graph_of_source();
    let mut errors = Vec::new();
    for (module, imports) in &graph {
        for import in imports {
            if !is_allowed(module, import) {
                errors.push(format!("{module} imports {import}"));
            }
        }
    }
    assert!(
        errors.is_empty(),
        "imports must point to a lower layer; the layers from bottom to top are {LAYERS:?}, and {SEPARATE:?} are \
         separate:\n  {}",
        errors.join("\n  ")
    );
}

#[test]
fn modules_have_no_circular_imports() {
    let graph = graph_of_source();
    for folder in FREE_OF_CIRCLES {
        assert!(graph.keys().any(|module| is_in(module, folder)), "src/{folder} has no modules");
        let inside = |module: &String| is_in(module, folder);
        let graph: Graph = (graph.iter().filter(|(module, _)| inside(module)))
            .map(|(module, imports)| {
                (module.clone(), imports.iter().filter(|import| inside(import)).cloned().collect())
            })
            .collect();
        if let Some(circle) = find_circle(&graph) {
            panic!(
                "modules of src/{folder} import each other in a circle: {}; move what they share to a module below",
                circle.join(" -> ")
            );
        }
    }
}

#[test]
fn imports_are_found_in_source_text() {
    let modules: BTreeSet<String> =
        ["", "a", "a::b", "a::b::c", "a::d", "e", "e::f"].into_iter().map(str::to_owned).collect();
    let imports = |text: &str| imports_of("a::b", text, &modules).into_iter().collect::<Vec<_>>();
    assert_eq!(imports("use super::{d::{self, X}, Y};\nuse crate::e::f::Z as W;"), ["a", "a::d", "e::f"]);
    assert_eq!(imports("pub use c::X; pub use self::c::Y; use std::fmt;"), ["a::b::c"]);
    assert_eq!(imports("fn f() { let x = crate::e::f(); super::d::g(\"crate::e::f\"); }"), ["a::d", "e::f"]);
    assert_eq!(imports("pub(in crate::e) fn f<'a>() { '\"'; r#\"crate::e\"#; } // crate::e\n/* crate::e */"), [""; 0]);
    assert_eq!(imports("use self::c::X;\n#[cfg(test)]\nmod tests { use crate::e::X; }"), ["a::b::c"]);
    assert_eq!(imports("#[cfg(test)]\npub(super) mod tests { use crate::e::X; }"), [""; 0]);
}

#[test]
fn circular_and_upward_imports_are_detected() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(to.to_string()).or_default();
            graph.entry(from.to_string()).or_default().insert(to.to_string());
        }
        graph
    };
    assert_eq!(find_circle(&graph(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])), None);
    let circle = find_circle(&graph(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("c", "e")]));
    assert_eq!(circle.unwrap(), ["b", "c", "d", "b"]);
    for (importer, imported, allowed) in [
        ("board::rule", "board::metric", true),
        ("board", "store", false),
        ("store::redis::keys", "store", true),
        ("store", "store::redis", false),
        ("store::redis::keys", "store::embedded", false),
        ("http::items", "service", true),
        ("http::items", "store::batch", false),
        ("app", "store::redis", true),
    ] {
        assert_eq!(is_allowed(importer, imported), allowed, "{importer} imports {imported}");
    }
}

fn is_in(module: &str, folder: &str) -> bool {
    module == folder || module.strip_prefix(folder).is_some_and(|rest| rest.starts_with("::"))
}

/// Returns whether a module may import another.
fn is_allowed(importer: &str, imported: &str) -> bool {
    let layer = |module: &str| {
        let layers = LAYERS.iter().enumerate().flat_map(|(rank, names)| names.iter().map(move |name| (rank, *name)));
        layers.filter(|(_, name)| is_in(module, name)).max_by_key(|(_, name)| name.len())
    };
    let is_separate = SEPARATE.iter().any(|(from, to)| is_in(importer, from) && is_in(imported, to));
    match (layer(importer), layer(imported)) {
        (Some((from_rank, from)), Some((to_rank, to))) => !is_separate && (from == to || to_rank < from_rank),
        _ => true,
    }
}

/// Returns the modules of a circle, the first one repeated at the end, if there is one.
fn find_circle(graph: &Graph) -> Option<Vec<String>> {
    fn visit<'a>(graph: &'a Graph, module: &'a str, path: &mut Vec<&'a str>, done: &mut BTreeSet<&'a str>) -> bool {
        if let Some(start) = path.iter().position(|on_path| *on_path == module) {
            path.drain(..start);
            path.push(module);
            return true;
        }
        if !done.contains(module) {
            path.push(module);
            for import in graph.get(module).into_iter().flatten() {
                if visit(graph, import, path, done) {
                    return true;
                }
            }
            path.pop();
            done.insert(module);
        }
        false
    }
    let (mut path, mut done) = (Vec::new(), BTreeSet::new());
    let is_found = graph.keys().any(|module| visit(graph, module, &mut path, &mut done));
    is_found.then(|| path.into_iter().map(str::to_owned).collect())
}

/// Reads the imports of all modules in `src`.
fn graph_of_source() -> Graph {
    let mut texts = BTreeMap::new();
    read_modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut texts);
    let modules: BTreeSet<String> = texts.keys().cloned().collect();
    texts.iter().map(|(module, text)| (module.clone(), imports_of(module, text, &modules))).collect()
}

/// Reads the files of a folder, except those with tests, by the path of their module.
fn read_modules(folder: &Path, module: &str, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let child = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
        if name == "tests" {
            continue;
        } else if path.is_dir() {
            read_modules(&path, &child, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let child = if ["mod", "lib", "main"].contains(&name) { module.to_owned() } else { child };
            texts.entry(child).or_default().push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the modules that the text of a module imports, without itself.
fn imports_of(module: &str, text: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let code = without_comments_and_strings(text);
    let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code = code.split("#[cfg(test)]\npub(super) mod ").next().unwrap_or_default();
    let mut paths = Vec::new();
    for (at, _) in code.char_indices().filter(|(at, c)| is_word(*c) && !code[..*at].ends_with(is_path_char)) {
        let rest = &code[at..];
        let starts = |word: &str| rest.strip_prefix(word).is_some_and(|rest| rest.starts_with("::"));
        if (starts("crate") || starts("super") || starts("self")) && !code[..at].trim_end().ends_with("(in") {
            expand(&[], rest, &mut paths);
        } else if let Some(rest) = rest.strip_prefix("use ") {
            // A path that starts with the name of a child module.
            let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
            if modules.contains(&join(module, &[&name])) && !["crate", "super", "self"].contains(&name.as_str()) {
                expand(&["self".to_owned()], rest, &mut paths);
            }
        }
    }
    let resolved = paths.iter().map(|path| resolve(module, path, modules));
    resolved.filter(|import| import != module).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_path_char(c: char) -> bool {
    is_word(c) || c == ':'
}

fn join(module: &str, names: &[&str]) -> String {
    let parts = module.split("::").filter(|part| !part.is_empty()).chain(names.iter().copied());
    parts.collect::<Vec<_>>().join("::")
}

/// Adds the path at the start of the text, or all paths of a group in braces; returns the rest of the text.
fn expand<'t>(prefix: &[String], text: &'t str, paths: &mut Vec<Vec<String>>) -> &'t str {
    let mut path = prefix.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            rest = group.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                rest = expand(&path, rest, paths).trim_start();
                // Skips `as` with a name, then the comma.
                rest = rest.trim_start_matches(|c: char| is_word(c) || c == ' ' || c == '*').trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        path.push(rest[..end].to_owned());
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(next) if next.starts_with(|c| is_word(c) || c == '{') => rest = next,
            other => {
                paths.push(path);
                return other.unwrap_or(rest);
            }
        }
    }
}

/// Returns the module that a path refers to, or that contains the item that it refers to.
fn resolve(module: &str, path: &[String], modules: &BTreeSet<String>) -> String {
    let mut base: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    for name in path {
        match name.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            name if modules.contains(&join(&base.join("::"), &[name])) => base.push(name),
            _ => break,
        }
    }
    base.join("::")
}

/// Replaces comments, strings and character literals by spaces.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let raw_hashes = rest.strip_prefix('r').map(|rest| rest.len() - rest.trim_start_matches('#').len());
        let raw_string = raw_hashes.filter(|hashes| rest[1 + hashes..].starts_with('"') && !code.ends_with(is_word));
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw_string {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = 2 + hashes;
            rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' && (rest[1..].starts_with('\\') || rest[1..].chars().nth(1) == Some('\'')) {
            quoted(rest, '\'')
        } else {
            0
        };
        if skipped == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// Returns the length of the literal at the start of the text.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
