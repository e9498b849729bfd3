//! Pictures as files: kept, sound, and safe from the names in them.

use std::fs;

use super::support::*;

/// The open elements at the end of a text, or what is wrong with it. Enough of XML for what is written here.
pub fn check(xml: &str) -> Result<(), String> {
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
    for machines in ["1", "40", "160"] {
        let svg = picture("sizes.svg", &[SMALL, "--machines", machines, "--faults", "storm"]);
        check(&svg).unwrap_or_else(|why| panic!("{machines}: {why}"));
        for part in ["<title>", "ceiling", "floor", "virtual time", "viewBox"] {
            assert!(svg.contains(part), "{machines}: {part}");
        }
    }
}

/// The box of each text: left, top, right, bottom. Widths are those of a wide font.
fn boxes(svg: &str) -> Vec<(String, [f64; 4])> {
    let texts = svg.split("<text ").skip(1).filter_map(|part| part.split_once('>'));
    let one = |(attributes, rest): (&str, &str)| {
        let of = |name: &str| {
            let (_, value) = attributes.split_once(&format!("{name}=\""))?;
            value.split('"').next()
        };
        let number = |name: &str| of(name).unwrap().parse::<f64>().unwrap();
        let text = rest.split('<').next().unwrap().to_owned();
        let size = match of("class") {
            Some("h") => 18.0,
            Some("n") => 9.0,
            _ => 12.0,
        };
        let wide = text.chars().count() as f64 * size * 0.6;
        let (x, y) = (number(" x"), number(" y"));
        let left = match of("text-anchor") {
            Some("middle") => x - wide / 2.0,
            Some("end") => x - wide,
            _ => x,
        };
        (text, [left, y - size * 0.8, left + wide, y + size * 0.2])
    };
    texts.map(one).collect()
}

fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

fn labels_are_apart(svg: &str) {
    let boxes = boxes(svg);
    assert!(boxes.iter().any(|(text, _)| text.starts_with("ceiling ")), "{svg}");
    for (n, (text, a)) in boxes.iter().enumerate() {
        for (other, b) in boxes.iter().skip(n + 1) {
            assert!(!overlap(a, b), "{text} {a:?} overlaps {other} {b:?}");
        }
    }
}

#[test]
fn labels_do_not_overlap_however_near_the_limits_are() {
    let web = "config/pools/web.yaml";
    for (file, machines) in [(SMALL, "1"), (SMALL, "3"), (web, "30"), (web, "160")] {
        let svg = picture("labels.svg", &[file, "--machines", machines]);
        labels_are_apart(&svg);
    }
}

#[test]
fn strategies_are_drawn_side_by_side() {
    let ways = "batch:20%,waves,poolkeeper:maxSurge=0+maxUnavailable=1";
    let args = ["config/pools/web.yaml", "--compare", ways];
    let svg = picture("compare.svg", &args);
    check(&svg).unwrap();
    labels_are_apart(&svg);
    assert_eq!(svg, picture("compare-again.svg", &args));
    let count = |part: &str| svg.matches(part).count();
    assert_eq!((count("class=\"b\""), count(">floor 30<"), count(">floor 29<")), (4, 3, 1));
    assert_eq!(
        (count("<title>all machines"), count(">0</text>"), count("virtual time")),
        (4, 5, 1)
    );
    let (_, description) = svg.split_once("<desc id=\"desc\">").unwrap();
    let description = description.split('<').next().unwrap();
    for part in ["poolkeeper", "kept 30 serving", "batch:20% fell to 24", "calls."] {
        assert!(description.contains(part), "{part}: {description}");
    }
    assert!(svg.contains("class=\"short\""), "what is missing below the floor is drawn");
    let calm = picture("calm.svg", &["config/pools/web.yaml"]);
    assert!(!calm.contains("class=\"short\""), "nothing is missing");
}

#[test]
fn the_check_of_labels_finds_overlaps() {
    let text = |y: u32| format!("<text class=\"d\" x=\"84\" y=\"{y}\">floor 3</text>");
    let at = |y: u32| boxes(&text(y)).remove(0).1;
    assert!(overlap(&at(20), &at(24)) && !overlap(&at(20), &at(34)));
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
