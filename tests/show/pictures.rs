//! Pictures as files: kept, sound, and safe from the names in them.

use std::fs;

use super::support::*;

/// The open elements at the end of a text, or what is wrong with it. Enough of XML for what is written here.
fn check(xml: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, part) in xml.split('<').enumerate() {
        if at == 0 {
            continue;
        }
        let (tag, text) =
            part.split_once('>').ok_or_else(|| format!("a tag never ends: {part}"))?;
        if text.contains('>') {
            return Err(format!("a bare > in {part}"));
        }
        let entities = text.split('&').skip(1).chain(tag.split('&').skip(1));
        for entity in entities {
            if !["amp;", "lt;", "gt;", "quot;", "#39;"]
                .iter()
                .any(|known| entity.starts_with(known))
            {
                return Err(format!("a bare & in {part}"));
            }
        }
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap_or_default();
        if tag.starts_with('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> ends {last:?}"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("quotes do not match in {tag}"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("never ended: {open:?}")) }
}

fn picture(name: &str, args: &[&str]) -> String {
    let path = file(name);
    // A broken law is drawn like everything else.
    let ended = run(&[&["simulate"], args, &["--svg", &path]].concat());
    assert!(matches!(ended.code, Some(0 | 3)) && ended.err.is_empty(), "{ended:?}");
    assert!(ended.out.contains(&path), "the page says where the picture is: {}", ended.out);
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_picture_of_three_machines() {
    let svg = picture("three.svg", &[SMALL, "--machines", "3"]);
    check(&svg).unwrap();
    golden("three.svg", &svg);
}

#[test]
fn pictures_of_all_sizes_are_sound() {
    for machines in ["1", "40", "400"] {
        let svg = picture("sizes.svg", &[SMALL, "--machines", machines, "--faults", "storm"]);
        check(&svg).unwrap_or_else(|why| panic!("{machines}: {why}"));
        for part in ["<title>", "ceiling", "floor", "virtual time", "viewBox"] {
            assert!(svg.contains(part), "{machines}: {part}");
        }
    }
}

#[test]
fn names_cannot_break_out_of_a_picture() {
    let text = fs::read_to_string(format!("{HOME}/{ROLLING}")).unwrap();
    let text = text.replace(r#""id": "1""#, r#""id": "<script>&""#);
    let svg = picture("names.svg", &[&written("names.json", text.as_bytes())]);
    check(&svg).unwrap();
    assert!(svg.contains("&lt;script&gt;&amp;") && !svg.contains("<script"), "{svg}");
}

#[test]
fn the_check_finds_faults() {
    for bad in ["<a>", "<a></b>", "<a>&</a>", "<a b=\"></a>", "<a>></a>", "<a"] {
        assert!(check(bad).is_err(), "{bad}");
    }
    assert_eq!(check("<a b=\"c\"><d/>&amp;</a>"), Ok(()));
}
