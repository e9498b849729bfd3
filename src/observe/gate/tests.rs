use super::*;

const START: Time = Time::from_millis(1_800_000_000_000);

fn gate(need: u32, failures: u32) -> GatePolicy {
    let check = GateCheck::Command { run: "smoke".into() };
    GatePolicy { need, failures, ..GatePolicy::with_defaults("smoke".into(), check) }
}

fn after(seconds: i64) -> Time {
    START.plus(Span::seconds(seconds))
}

/// The verdict after these measurements, one each 30 s from 120 s on.
fn walk(gate: &GatePolicy, question: GateQuestionKind, measured: &str) -> Verdict {
    let mut streak = GateStreak::new(START);
    let mut at = after(120);
    for letter in measured.chars() {
        let verdict = match letter {
            'p' => Verdict::Pass,
            'f' => Verdict::Fail,
            _ => Verdict::Unknown,
        };
        streak.note(gate, question, at, GateReading::new(verdict, "found"));
        at = at.plus(gate.interval);
    }
    let fact = streak.fact(gate, question, at);
    fact.map_or(Verdict::Unknown, |fact| fact.verdict)
}

#[test]
fn passes_count_in_a_row_and_failures_over_all() {
    use GateQuestionKind::{Bake, Baseline, Checkpoint};
    use Verdict::{Fail, Pass, Unknown};
    for (measured, verdict) in [
        ("", Unknown),
        ("pp", Unknown),
        ("ppp", Pass),
        ("pppppp", Pass),
        ("ppfpp", Unknown),
        ("ppfppp", Pass),
        ("pp?pp", Unknown),
        ("pp?ppp", Pass),
        ("ppp?", Unknown),
        ("pppf", Unknown),
        ("ff", Fail),
        ("fpf", Fail),
        // One more pass does not undo the second failure.
        ("fpfppp", Fail),
        ("f?????", Unknown),
        ("?", Unknown),
    ] {
        assert_eq!(walk(&gate(3, 1), Checkpoint, measured), verdict, "{measured}");
        assert_eq!(walk(&gate(3, 1), Bake, measured), verdict, "{measured}");
    }
    assert_eq!(walk(&gate(1, 0), Checkpoint, "p"), Pass);
    assert_eq!(walk(&gate(1, 0), Checkpoint, "f"), Fail);
    // Before anything is replaced, the last measurement counts alone.
    for (measured, verdict) in
        [("p", Pass), ("f", Fail), ("ffffp", Pass), ("pppf", Fail), ("p?", Unknown)]
    {
        assert_eq!(walk(&gate(3, 1), Baseline, measured), verdict, "{measured}");
    }
}

#[test]
fn a_measurement_within_the_initial_delay_counts_for_nothing() {
    let gate = gate(1, 0);
    let note = |question, seconds| {
        let mut streak = GateStreak::new(START);
        streak.note(&gate, question, after(seconds), GateReading::new(Verdict::Fail, "1"));
        streak.fact(&gate, question, after(seconds)).map(|fact| fact.verdict)
    };
    assert_eq!(note(GateQuestionKind::Checkpoint, 119), None);
    assert_eq!(note(GateQuestionKind::Checkpoint, 120), Some(Verdict::Fail));
    assert_eq!(note(GateQuestionKind::Baseline, 0), Some(Verdict::Fail));
}

#[test]
fn an_old_measurement_is_no_verdict() {
    let (gate, question) = (gate(1, 0), GateQuestionKind::Bake);
    for verdict in [Verdict::Pass, Verdict::Fail] {
        let mut streak = GateStreak::new(START);
        streak.note(&gate, question, after(200), GateReading::new(verdict, "0.5"));
        let at = |seconds| streak.fact(&gate, question, after(seconds)).unwrap();
        assert_eq!((at(270).verdict, at(271).verdict), (verdict, Verdict::Unknown));
        assert!(at(270).say.unwrap().starts_with("0.5; 1 "));
        assert!(at(271).say.unwrap().starts_with("it was not measured since"));
    }
}
