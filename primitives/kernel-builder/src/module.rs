//! A PTX module as the compiler writes it, split into its module-level items.
//!
//! The parser understands only as much of the grammar as splitting needs: comments, strings, the end of an item, its
//! name and the names it mentions.

use crate::Error;

/// The kind of a module-level item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Entry,
    Function,
    Variable,
}

/// A kernel, function or variable.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub kind: ItemKind,
    pub name: String,
    /// The text without comments, from the first to the last character of the item.
    pub text: String,
}

/// A whole module.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// `.version`, `.target` and `.address_size`, one line each.
    pub header: Vec<String>,
    pub items: Vec<Item>,
}

impl Module {
    pub fn parse(ptx: &str) -> Result<Self, Error> {
        let text = strip_comments(ptx);
        let mut module = Self { header: Vec::new(), items: Vec::new() };
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let directive = rest.split_whitespace().next().unwrap_or_default();
            let length = match directive {
                ".version" | ".target" | ".address_size" => {
                    let length = line_length(rest);
                    module.header.push(rest[..length].trim_end().replace('\t', " "));
                    length
                }
                // Debug information: kernels do not need it, and it contains the folder of the sources.
                ".file" | ".loc" => line_length(rest),
                ".section" => item_length(rest)?,
                _ => {
                    let length = item_length(rest)?;
                    module.items.push(Item::parse(rest[..length].trim_end())?);
                    length
                }
            };
            rest = rest[length..].trim_start();
        }
        if module.header.len() != 3 {
            return Err(malformed("expected .version, .target and .address_size", &module.header.join(" ")));
        }
        Ok(module)
    }
}

impl Item {
    fn parse(text: &str) -> Result<Self, Error> {
        let (kind, name) = if let Some((_, after)) = split_directive(text, ".entry") {
            (ItemKind::Entry, words(after).next())
        } else if let Some((_, after)) = split_directive(text, ".func") {
            // `.func (.param .b32 retval) name(…)`: the return value comes before the name.
            let after = after.trim_start();
            let after = match after.strip_prefix('(') {
                Some(inner) => inner.split_once(')').map_or("", |(_, after)| after),
                None => after,
            };
            (ItemKind::Function, words(after).find(|word| !word.after_dot))
        } else {
            let declaration = text.split(['[', '=', ';']).next().unwrap_or_default();
            (ItemKind::Variable, words(declaration).filter(|word| !word.after_dot).last())
        };
        match name {
            Some(name) => Ok(Self { kind, name: name.text.into(), text: text.into() }),
            None => Err(malformed("expected an item with a name", text)),
        }
    }

    /// Returns whether the host or other modules can see the item by its name.
    pub fn is_visible(&self) -> bool {
        [".visible", ".extern", ".weak", ".common"].iter().any(|linkage| self.text.starts_with(linkage))
    }
}

/// A word of PTX, and whether a dot precedes it (`.global`, the `add` of `atom.add`), which is never so for an item's
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub text: &'a str,
    pub after_dot: bool,
    pub start: usize,
}

/// Returns the words of a text without comments. Skips strings.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !is_word(bytes[at]) {
            at = if bytes[at] == b'"' { string_end(bytes, at) } else { at + 1 };
        }
        if at >= bytes.len() {
            return None;
        }
        let start = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        Some(Word { text: &text[start..at], after_dot: start > 0 && bytes[start - 1] == b'.', start })
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%')
}

/// Returns the text before and after a directive such as `.entry`, if it comes before the item's parameters and body.
fn split_directive<'a>(text: &'a str, directive: &str) -> Option<(&'a str, &'a str)> {
    // A function's return value may follow `.func` in parentheses, so the directive comes before all parentheses.
    let head = text.split(['(', '{', '=', ';', '[']).next().unwrap_or_default();
    let word = words(head).find(|word| word.after_dot && word.text == &directive[1..])?;
    Some((&text[..word.start - 1], &text[word.start + word.text.len()..]))
}

/// Returns the length of the item at the beginning of `text`: up to the `;` of a declaration or the `}` of a body.
fn item_length(text: &str) -> Result<usize, Error> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut initialised) = (0, 0usize, false);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'=' if depth == 0 => initialised = true,
            b'{' | b'(' => depth += 1,
            b'}' | b')' => {
                depth = depth.checked_sub(1).ok_or_else(|| malformed("unmatched closing bracket", text))?;
                if bytes[at] == b'}' && depth == 0 && !initialised {
                    return Ok(at + 1);
                }
            }
            b';' if depth == 0 => return Ok(at + 1),
            _ => {}
        }
        at += 1;
    }
    Err(malformed("an item does not end", text))
}

fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// Returns the position after the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Removes comments, and the lines that contain nothing else.
///
/// Comments number call sequences and blocks across the whole module, so they would change with a neighbour.
pub(crate) fn strip_comments(ptx: &str) -> String {
    let bytes = ptx.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &ptx[at..];
        let end = match bytes[at] {
            b'"' => string_end(bytes, at),
            b'/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                at += rest.find("*/").map_or(rest.len(), |end| end + 2);
                continue;
            }
            // Names are ASCII. Anything else is copied character by character.
            _ => at + rest.chars().next().map_or(1, char::len_utf8),
        };
        text.extend_from_slice(&bytes[at..end]);
        at = end;
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.join("\n") + "\n"
}

fn malformed(reason: &'static str, near: &str) -> Error {
    Error::MalformedPtx { reason, near: near.chars().take(120).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "//\n// LLVM\n//\n\n.version 7.0\n.target sm_70\n.address_size 64\n\n";

    fn items(text: &str) -> Vec<(ItemKind, String)> {
        let module = Module::parse(&format!("{HEADER}{text}")).unwrap();
        assert_eq!(module.header, [".version 7.0", ".target sm_70", ".address_size 64"]);
        module.items.into_iter().map(|item| (item.kind, item.name)).collect()
    }

    #[test]
    fn every_form_of_item_is_named() {
        use ItemKind::*;
        let found = items(
            ".global .align 4 .b8 table[20] = {3, 0, 0, 0, 1};\n\
             .extern .shared .align 16 .b8 shared_memory[];\n\
             .visible .global .align 4 .b8 zero[8];\n\
             .global .align 8 .u64 pointers[2] = {table, generic(table)};\n\
             .extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0\n)\n;\n\
             .func _RNv4slow(.param .b32 _RNv4slow_param_0)\n.noreturn\n{\n\t{ // callseq 0, 0\n\t}\n\tret;\n}\n\
             .func  (.param .b32 func_retval0) other()\n{\n\tret;\n}\n\
             \t// .globl\tk\n.visible .entry k(\n\t.param .align 8 .b8 k_param_0[48]\n)\n{\n\tret;\n\n}\n\
             .entry nothing()\n{\n}\n",
        );
        let expected = [
            (Variable, "table"),
            (Variable, "shared_memory"),
            (Variable, "zero"),
            (Variable, "pointers"),
            (Function, "vprintf"),
            (Function, "_RNv4slow"),
            (Function, "other"),
            (Entry, "k"),
            (Entry, "nothing"),
        ];
        assert_eq!(found, expected.map(|(kind, name)| (kind, name.to_owned())));
    }

    #[test]
    fn debug_information_is_dropped() {
        assert_eq!(items(".file 1 \"/home/me/lib.rs\"\n.section .debug_str\n{\n.b8 1\n}\n"), []);
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        let found = items(".entry a()\n{\n\t.pragma \"}\";\n\t/* } */ ret; // }\n}\n.entry b()\n{\n}\n");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn what_does_not_end_is_an_error_that_quotes_it() {
        let error = Module::parse(&format!("{HEADER}.entry a()\n{{\n")).unwrap_err().to_string();
        assert!(error.contains("does not end") && error.contains(".entry a()"), "{error}");
        assert!(Module::parse(".version 7.0\n").is_err());
    }

    #[test]
    fn comments_go_and_strings_stay() {
        assert_eq!(strip_comments("a // b\n// c\n\"//\" d /* e\n */ f\n"), "a\n\"//\" d  f\n");
    }
}
