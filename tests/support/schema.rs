//! A reader of as much JSON Schema as our schemas use, with a matcher of their patterns.

use serde_json::{Map, Value};

/// Says nothing about a value.
const NOTES: [&str; 7] =
    ["$schema", "title", "description", "default", "examples", "example", "discriminator"];

/// Whether a value fits its schema, and if not, where. `document` holds the schemas that references name.
pub fn fits(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let keys = schema.as_object().unwrap();
    let say = |holds: bool, say: String| if holds { Ok(()) } else { Err(say) };
    for (key, said) in keys {
        match key.as_str() {
            "$ref" => {
                let pointer = said.as_str().unwrap().strip_prefix('#').unwrap();
                let named = document.pointer(pointer);
                fits(document, named.unwrap_or_else(|| panic!("no schema {pointer}")), value, at)?;
            }
            "type" => say(is_kind(said, value), format!("{at} is no {said}"))?,
            "const" => say(value == said, format!("{at} is not {said}"))?,
            "enum" => {
                say(said.as_array().unwrap().contains(value), format!("{at} is none of {said}"))?;
            }
            "anyOf" => {
                let mut any = said.as_array().unwrap().iter();
                let any = any.any(|one| fits(document, one, value, at).is_ok());
                say(any, format!("{at} fits none of {said}"))?;
            }
            "items" => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                for (n, item) in items.iter().enumerate() {
                    fits(document, said, item, &format!("{at}[{n}]"))?;
                }
            }
            "required" => {
                let mut names = said.as_array().unwrap().iter().filter_map(Value::as_str);
                let lacks =
                    value.as_object().and_then(|of| names.find(|name| !of.contains_key(*name)));
                say(lacks.is_none(), format!("{at} lacks {lacks:?}"))?;
            }
            "properties" => properties(document, said.as_object().unwrap(), value, at)?,
            "propertyNames" => {
                let mut names = value.as_object().into_iter().flat_map(Map::keys);
                names.try_for_each(|name| fits(document, said, &name.as_str().into(), at))?;
            }
            "additionalProperties" => {
                others(document, said, keys.get("properties"), value, at)?;
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "maxItems" | "minItems"
            | "uniqueItems" | "minProperties" | "maxProperties" | "minLength" | "maxLength"
            | "pattern" => {
                say(is_within(key, said, value), format!("{at} breaks {key} {said}"))?;
            }
            "format" => {
                let read = value.as_str().is_none_or(|text| is_time(text, said));
                say(read, format!("{at} is no time"))?;
            }
            known if NOTES.contains(&known) => {}
            other => panic!("the checker does not know {other}"),
        }
    }
    Ok(())
}

/// Whether a value keeps a limit; one of another kind has none.
fn is_within(key: &str, said: &Value, value: &Value) -> bool {
    let number = || said.as_u64().unwrap() as usize;
    let letters = value.as_str().map(|text| text.chars().count());
    match key {
        "minimum" => value.as_f64().is_none_or(|number| Some(number) >= said.as_f64()),
        "maximum" => value.as_f64().is_none_or(|number| Some(number) <= said.as_f64()),
        "exclusiveMinimum" => value.as_f64().is_none_or(|number| Some(number) > said.as_f64()),
        "maxItems" => value.as_array().is_none_or(|items| items.len() <= number()),
        "minItems" => value.as_array().is_none_or(|items| items.len() >= number()),
        "uniqueItems" => value.as_array().is_none_or(|items| {
            (0..items.len()).all(|n| !items[..n].contains(&items[n])) || said == false
        }),
        "minProperties" => value.as_object().is_none_or(|of| of.len() >= number()),
        "maxProperties" => value.as_object().is_none_or(|of| of.len() <= number()),
        "minLength" => letters.is_none_or(|many| many >= number()),
        "maxLength" => letters.is_none_or(|many| many <= number()),
        _ => value.as_str().is_none_or(|text| matches(said.as_str().unwrap(), text)),
    }
}

fn is_time(text: &str, format: &Value) -> bool {
    assert_eq!(format, "date-time");
    poolkeeper::model::time::Time::parse(text).is_ok()
}

fn is_kind(said: &Value, value: &Value) -> bool {
    let kinds = kind(value);
    match said {
        Value::String(one) => kinds.contains(&one.as_str()),
        Value::Array(any) => any.iter().any(|one| kinds.contains(&one.as_str().unwrap())),
        other => panic!("no type: {other}"),
    }
}

fn properties(
    document: &Value,
    known: &Map<String, Value>,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    known.iter().try_for_each(|(name, schema)| match value.get(name) {
        Some(value) => fits(document, schema, value, &format!("{at}.{name}")),
        None => Ok(()),
    })
}

fn others(
    document: &Value,
    said: &Value,
    known: Option<&Value>,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let is_known = |name: &str| known.is_some_and(|known| known.get(name).is_some());
    object.iter().filter(|(name, _)| !is_known(name)).try_for_each(|(name, value)| match said {
        Value::Bool(false) => Err(format!("{at} has {name}, which is not described")),
        schema => fits(document, schema, value, &format!("{at}.{name}")),
    })
}

fn kind(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_f64() => &["number"],
        Value::Number(_) => &["integer", "number"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    }
}

enum Piece {
    Start,
    End,
    Set { ranges: Vec<(char, char)>, is_negated: bool },
    Group(Vec<Vec<Item>>),
}

struct Item {
    piece: Piece,
    min: usize,
    max: usize,
}

/// Whether a text has a part like this pattern: sets, groups, alternatives, `?`, `*`, `+`, `{n}`, `{n,m}`, `^` and `$`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    let any = alternatives(&pattern, &mut at);
    assert_eq!(at, pattern.len(), "a pattern that the matcher does not know: {pattern:?}");
    let text: Vec<char> = text.chars().collect();
    (0..=text.len()).any(|from| any.iter().any(|items| run(items, &text, from, &mut |_| true)))
}

fn alternatives(pattern: &[char], at: &mut usize) -> Vec<Vec<Item>> {
    let mut any = vec![Vec::new()];
    while *at < pattern.len() && pattern[*at] != ')' {
        if pattern[*at] == '|' {
            *at += 1;
            any.push(Vec::new());
            continue;
        }
        let piece = piece(pattern, at);
        let (min, max) = times(pattern, at);
        any.last_mut().unwrap().push(Item { piece, min, max });
    }
    any
}

fn piece(pattern: &[char], at: &mut usize) -> Piece {
    let c = pattern[*at];
    *at += 1;
    match c {
        '^' => Piece::Start,
        '$' => Piece::End,
        '(' => {
            let any = alternatives(pattern, at);
            assert_eq!(pattern[*at], ')');
            *at += 1;
            Piece::Group(any)
        }
        '[' => {
            let is_negated = pattern[*at] == '^';
            *at += usize::from(is_negated);
            let mut ranges = Vec::new();
            while pattern[*at] != ']' {
                ranges.extend(one(pattern, at));
            }
            *at += 1;
            Piece::Set { ranges, is_negated }
        }
        '\\' if pattern[*at] == 'S' => {
            *at += 1;
            Piece::Set { ranges: blank(), is_negated: true }
        }
        _ => {
            *at -= 1;
            Piece::Set { ranges: one(pattern, at), is_negated: false }
        }
    }
}

fn blank() -> Vec<(char, char)> {
    vec![(' ', ' '), ('\t', '\r'), ('\u{a0}', '\u{a0}')]
}

/// A character, a range of them, or `\s`.
fn one(pattern: &[char], at: &mut usize) -> Vec<(char, char)> {
    let first = pattern[*at];
    *at += 1;
    if first == '\\' {
        let escaped = pattern[*at];
        *at += 1;
        return if escaped == 's' { blank() } else { vec![(escaped, escaped)] };
    }
    if pattern.get(*at) == Some(&'-') && pattern.get(*at + 1).is_some_and(|last| *last != ']') {
        let last = pattern[*at + 1];
        *at += 2;
        return vec![(first, last)];
    }
    vec![(first, first)]
}

fn times(pattern: &[char], at: &mut usize) -> (usize, usize) {
    let (times, wide) = match pattern.get(*at) {
        Some('?') => ((0, 1), 1),
        Some('*') => ((0, usize::MAX), 1),
        Some('+') => ((1, usize::MAX), 1),
        Some('{') => {
            let end = pattern[*at..].iter().position(|c| *c == '}').unwrap();
            let inside: String = pattern[*at + 1..*at + end].iter().collect();
            let (min, max) = inside.split_once(',').unwrap_or((&inside, &inside));
            ((min.parse().unwrap(), max.parse().unwrap()), end + 1)
        }
        _ => ((1, 1), 0),
    };
    *at += wide;
    times
}

fn run(items: &[Item], text: &[char], at: usize, then: &mut dyn FnMut(usize) -> bool) -> bool {
    match items.split_first() {
        Some((item, rest)) => repeat(item, rest, text, (at, 0), then),
        None => then(at),
    }
}

fn repeat(
    item: &Item,
    rest: &[Item],
    text: &[char],
    (at, done): (usize, usize),
    then: &mut dyn FnMut(usize) -> bool,
) -> bool {
    let again = done < item.max
        && once(&item.piece, text, at, &mut |next| {
            (next > at || done < item.min) && repeat(item, rest, text, (next, done + 1), then)
        });
    again || (done >= item.min && run(rest, text, at, then))
}

fn once(piece: &Piece, text: &[char], at: usize, then: &mut dyn FnMut(usize) -> bool) -> bool {
    match piece {
        Piece::Start => at == 0 && then(at),
        Piece::End => at == text.len() && then(at),
        Piece::Set { ranges, is_negated } => {
            let has = |c: &char| ranges.iter().any(|(first, last)| (first..=last).contains(&c));
            text.get(at).is_some_and(|c| has(c) != *is_negated) && then(at + 1)
        }
        Piece::Group(any) => any.iter().any(|items| run(items, text, at, &mut *then)),
    }
}

#[test]
fn the_matcher_knows_our_patterns() {
    for (pattern, good, bad) in [
        ("^([0-9]+d)?([0-9]+h)?([0-9]+ms)?$", "1d12h", "12h1d"),
        ("^([0-9]+m)?([0-9]+ms)?$", "5ms", "5s"),
        ("^(0|[1-9][0-9]?|100)%$", "100%", "101%"),
        ("^[A-Za-z0-9][A-Za-z0-9._-]*$", "a-b_c.d", "-a"),
        ("^(/[^/\\s]+){2}/*$", "/a/b//", "/a/b/c"),
        ("^(/\\S+|[^:/\\s]+:[^:/\\s]+)$", "a:b", "a"),
        ("\\S", " a ", "   "),
        ("^[!-~]{1,3}$", "abc", "abcd"),
    ] {
        assert!(matches(pattern, good), "{pattern} {good}");
        assert!(!matches(pattern, bad), "{pattern} {bad}");
    }
}

#[test]
fn the_checker_sees_what_does_not_fit() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "null" }] },
            "b": { "type": "array", "items": { "enum": ["x"] }, "maxItems": 1 },
            "c": { "type": "string", "format": "date-time" },
            "d": { "type": "string", "pattern": "^[a-c]+$", "maxLength": 2, "default": "a" },
            "f": { "type": "object", "propertyNames": { "pattern": "^[a-c]+$" } } },
    });
    for (text, good) in [
        (r#"{"a":1}"#, true),
        (r#"{"a":null,"b":["x"],"c":"2026-03-01T12:00:00Z","d":"ab"}"#, true),
        ("[]", false),
        ("{}", false),
        (r#"{"a":-1}"#, false),
        (r#"{"a":"1"}"#, false),
        (r#"{"a":1,"b":["y"]}"#, false),
        (r#"{"a":1,"b":["x","x"]}"#, false),
        (r#"{"a":1,"c":"noon"}"#, false),
        (r#"{"a":1,"d":"x"}"#, false),
        (r#"{"a":1,"d":"abc"}"#, false),
        (r#"{"a":1,"e":1}"#, false),
        (r#"{"a":1,"f":{"ab":1}}"#, true),
        (r#"{"a":1,"f":{"x":1}}"#, false),
    ] {
        let value = serde_json::from_str(text).unwrap();
        assert_eq!(fits(&schema, &schema, &value, "").is_ok(), good, "{text}");
    }
}
