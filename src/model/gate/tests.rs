use super::*;

fn number(value: f64) -> Decimal {
    Decimal::new(value).unwrap()
}

#[test]
fn a_comparison_is_a_relation_and_a_number() {
    for (text, shown) in [
        ("<= 0.01", "<= 0.01"),
        ("<0.01", "< 0.01"),
        (" > -5 ", "> -5"),
        (">=1e3", ">= 1000"),
        ("== 0", "== 0"),
        ("!= 0", "!= 0"),
    ] {
        let parsed = Comparison::parse(text).map(|of| of.to_string());
        assert_eq!(parsed.as_deref(), Some(shown), "{text}");
    }
    for text in
        ["", "0.01", "<=", "= 1", "=> 1", "<= NaN", "< inf", "<= 1 2", "<= 1%", "<< 1", "<= x"]
    {
        assert_eq!(Comparison::parse(text), None, "{text}");
    }
}

#[test]
fn each_relation_is_its_own() {
    for (text, below, same, above) in [
        ("<= 1", true, true, false),
        ("< 1", true, false, false),
        (">= 1", false, true, true),
        ("> 1", false, false, true),
        ("== 1", false, true, false),
        ("!= 1", true, false, true),
    ] {
        let holds = |value| Comparison::parse(text).unwrap().holds(number(value));
        assert_eq!((holds(0.5), holds(1.0), holds(1.5)), (below, same, above), "{text}");
    }
}

#[test]
fn an_answer_passes_fails_or_says_nothing() {
    use EachSeries::{All, Any};
    use Verdict::{Fail, Pass, Unknown};
    let both = Some("> 0.05");
    for (values, fail, each, verdict) in [
        (&[0.01][..], both, None, Pass),
        (&[0.06], both, None, Fail),
        // Between the two.
        (&[0.03], both, None, Unknown),
        (&[0.03], None, None, Fail),
        (&[], both, None, Unknown),
        (&[], None, Some(All), Unknown),
        (&[], None, Some(Any), Unknown),
        // Several, and no word on what each must do.
        (&[0.0, 0.0], both, None, Unknown),
        (&[0.0, 0.01], both, Some(All), Pass),
        (&[0.0, 0.03], both, Some(All), Unknown),
        (&[0.0, 0.03, 0.06], both, Some(All), Fail),
        (&[0.03, 0.0, 0.06], both, Some(Any), Pass),
        (&[0.03, 0.06], both, Some(Any), Unknown),
        (&[0.06, 0.07], both, Some(Any), Fail),
    ] {
        let check = PrometheusCheck {
            server: "main".into(),
            query: "q".into(),
            pass: Comparison::parse("<= 0.01").unwrap(),
            fail: fail.and_then(Comparison::parse),
            each,
            partial: PartialAnswer::Refuse,
        };
        let values: Vec<Decimal> = values.iter().copied().map(number).collect();
        assert_eq!(check.verdict(&values), verdict, "{values:?} {fail:?} {each:?}");
    }
    // What both hold for fails.
    let check = PrometheusCheck {
        server: "main".into(),
        query: "q".into(),
        pass: Comparison::parse("> 1").unwrap(),
        fail: Comparison::parse("> 5"),
        each: None,
        partial: PartialAnswer::Refuse,
    };
    assert_eq!(check.verdict(&[number(9.0)]), Fail);
}

#[test]
fn a_status_is_what_the_gate_expects_of_it() {
    use Verdict::{Fail, Pass, Unknown};
    let expect = [("503", Unknown), ("5xx", Fail), ("204", Pass)];
    let expect = expect.map(|(text, verdict)| (StatusPattern::parse(text).unwrap(), verdict));
    let check = HttpCheck { endpoint: "shop".into(), expect: expect.into() };
    for (status, verdict) in [
        (200, Pass),
        (204, Pass),
        (206, Unknown),
        (302, Unknown),
        (404, Unknown),
        (500, Fail),
        (503, Unknown),
    ] {
        assert_eq!(check.verdict(status), verdict, "{status}");
    }
    for text in ["", "xx", "3xx", "302", "1xx", "99", "600", "5x", "+50", "0200", "5xxx"] {
        assert_eq!(StatusPattern::parse(text), None, "{text}");
    }
}

#[test]
fn the_least_time_to_a_pass() {
    let check = GateCheck::Command { run: "smoke".into() };
    let gate = GatePolicy::with_defaults("smoke".into(), check);
    assert_eq!(gate.least(), Span::seconds(190));
    assert_eq!(GatePolicy { need: 1, ..gate.clone() }.least(), Span::seconds(130));
    assert_eq!(gate.expires(), Span::seconds(60));
}
