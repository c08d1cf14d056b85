//! Checks on a kernel's PTX: signs that the compiler could not do what the kernel's author intended.
//!
//! | finding | usual cause |
//! | --- | --- |
//! | local memory | a register array indexed by something that is not constant after unrolling |
//! | call | a function that was not inlined, or a panic path |
//! | generic access | the compiler lost the state space of a pointer |
//! | generic address of shared memory | a pointer to shared memory went through memory or a call |

use std::fmt;

use crate::module::{strip_comments, words};

/// The rule that a kernel violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A `.local` variable, or an access to local memory.
    LocalMemory,
    /// A `call`, or a `.func` to call.
    Call,
    /// A load, store or atomic operation without a state space.
    GenericAccess,
    /// `cvta.shared`: a generic address of shared memory.
    GenericShared,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LocalMemory => "local memory",
            Self::Call => "call",
            Self::GenericAccess => "generic access",
            Self::GenericShared => "generic address of shared memory",
        })
    }
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The violated rule.
    pub rule: Rule,
    /// The offending statement.
    pub statement: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.statement)
    }
}

/// Checks the PTX of one kernel. Returns all findings; none for a good kernel.
pub fn lint(ptx: &str) -> Vec<Finding> {
    let text = strip_comments(ptx);
    let mut findings = Vec::new();
    // The compiler writes at most one statement per line. Inline assembly may have several, with braces around them.
    for statement in text.split([';', '\n']) {
        let statement = without_label_and_predicate(statement.trim_start_matches(['{', '}', ' ', '\t']).trim_end());
        if let Some(rule) = judge(statement) {
            let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
            findings.push(Finding { rule, statement });
        }
    }
    findings
}

/// `$L__BB0_1: @!%p1 ld.global…` → `ld.global…`
fn without_label_and_predicate(mut statement: &str) -> &str {
    if let Some((label, rest)) = statement.split_once(':')
        && words(label).next().is_some_and(|word| word.text == label)
    {
        statement = rest.trim_start();
    }
    if statement.starts_with('@') {
        statement = statement.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    }
    statement
}

fn judge(statement: &str) -> Option<Rule> {
    let first = statement.split_whitespace().next()?;
    if first.starts_with('.') {
        let directives = || statement.split_whitespace().take_while(|word| word.starts_with('.') || is_number(word));
        return if directives().any(|word| word == ".local") {
            Some(Rule::LocalMemory)
        } else if directives().any(|word| word == ".func" || word.starts_with(".func(")) {
            Some(Rule::Call)
        } else {
            None
        };
    }
    let mut parts = first.split('.');
    let operation = parts.next()?;
    let modifiers: Vec<&str> = parts.collect();
    let space = modifiers.iter().find_map(|modifier| {
        // `shared::cta` and `param::entry` are parts of a state space.
        let space = modifier.split("::").next().unwrap_or_default();
        ["global", "shared", "param", "const", "local"].into_iter().find(|known| *known == space)
    });
    match operation {
        "call" => Some(Rule::Call),
        "cvta" if space == Some("shared") && !modifiers.contains(&"to") => Some(Rule::GenericShared),
        "cvta" if space == Some("local") => Some(Rule::LocalMemory),
        "ld" | "ldu" | "st" | "atom" | "red" => match space {
            None => Some(Rule::GenericAccess),
            Some("local") => Some(Rule::LocalMemory),
            Some(_) => None,
        },
        _ => None,
    }
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(ptx: &str) -> Vec<Rule> {
        lint(ptx).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_clean_kernel_has_no_findings() {
        let ptx = "// call ld.u32\n.version 7.0\n.target sm_70\n.address_size 64\n\
            .extern .shared .align 16 .b8 memory[];\n\
            .visible .entry k(\n\t.param .u64 .ptr .global .align 4 k_param_0\n)\n.maxntid 256, 1, 1\n{\n\
            \t.reg .pred \t%p<2>;\n\tld.param.b64 \t%rd1, [k_param_0];\n\tcvta.to.global.u64 \t%rd2, %rd1;\n\
            \tcvta.to.shared.u64 \t%rd3, %rd1;\n\
            \t@%p1 bra \t$L__BB0_2;\n$L__BB0_2:\n\tret;\n}\n";
        assert_eq!(rules(ptx), []);
    }

    #[test]
    fn every_access_that_names_its_memory_is_fine() {
        for access in [
            "ld.relaxed.gpu.global.u32 %r1, [%rd1];",
            "ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];",
            "ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];",
            "ld.volatile.shared.u32 %r1, [%rd1];",
            "ld.acquire.gpu.global.u64 %rd1, [%rd2];",
            "st.release.gpu.global.u64 [%rd2], %rd1;",
            "st.shared::cta.b32 [%rd1], %r1;",
            "ld.param::entry.b32 %r1, [k_param_0];",
            "ld.const.u32 %r1, [table];",
            "atom.relaxed.gpu.global.add.u32 %r1, [%rd1], %r2;",
            "atom.shared.add.u32 %r3, [memory+1200], %r2;",
            "red.global.add.u32 [%rd1], 1;",
            "@%p1 st.global.b32 [%rd1], %r1;",
            "$L__BB0_3: @!%p1 red.shared.max.u32 [%r1], %r2;",
        ] {
            assert_eq!(rules(access), [], "{access}");
        }
    }

    #[test]
    fn generic_accesses_are_found() {
        for access in [
            "ld.v2.b32 {%r8, %r1}, [%rd10];",
            "ld.u32 %r1, [%rd1];",
            "ld.acquire.sys.u32 %r1, [%rd1];",
            "ld.relaxed.gpu.u32 %r1, [%rd1];",
            "ld.volatile.u32 %r1, [%rd1];",
            "st.b32 [%rd1], %r1;",
            "atom.add.u32 %r4, [%rd16], %r2;",
            "atom.acq_rel.gpu.cas.b32 %r4, [%rd16], %r2, %r3;",
            "red.add.u32 [%rd1], 1;",
            "@%p1 st.v4.b32 [%rd1], {%r2, %r1, %r3, %r4};",
            "$L__BB0_3: @!%p1 ld.u8 %rs1, [%rd1];",
            "{ ld.u32 %r1, [%rd1]; }",
        ] {
            assert_eq!(rules(access), [Rule::GenericAccess], "{access}");
        }
    }

    #[test]
    fn local_memory_is_found() {
        for text in [
            ".local .align 16 .b8 \t__local_depot0[64];",
            "ld.local.u32 %r1, [%rd1];",
            "st.local.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};",
            "cvta.local.u64 %SP, %SPL;",
        ] {
            assert_eq!(rules(text), [Rule::LocalMemory], "{text}");
        }
        assert_eq!(rules("mov.b64 %SPL, __local_depot0;"), []);
    }

    #[test]
    fn calls_are_found() {
        for text in [
            "call.uni (retval0), slow, (param0);",
            "@%p1 call.uni panic;",
            ".extern .func vprintf(.param .b64 a);",
            ".func  (.param .b32 func_retval0) slow(.param .b32 slow_param_0)",
            ".func (.param .b32 a) slow()",
            ".visible .func slow()",
        ] {
            assert_eq!(rules(text), [Rule::Call], "{text}");
        }
    }

    #[test]
    fn a_generic_address_of_shared_memory_is_found() {
        assert_eq!(rules("cvta.shared.u64 %rd1, memory;"), [Rule::GenericShared]);
        assert_eq!(rules("cvta.shared::cta.u64 %rd1, memory;"), [Rule::GenericShared]);
    }

    #[test]
    fn a_finding_quotes_the_statement() {
        let findings = lint("\tld.u32 \t%r1, [%rd1];\n");
        assert_eq!(findings[0].to_string(), "generic access: ld.u32 %r1, [%rd1]");
        let findings = lint("{ st.v2.b32 [%rd1], {%r1, %r2}; }");
        assert_eq!(findings[0].to_string(), "generic access: st.v2.b32 [%rd1], {%r1, %r2}");
    }
}
