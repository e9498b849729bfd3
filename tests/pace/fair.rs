//! Nobody starves: the stated bound under the heaviest load that a house can make.

use poolkeeper::model::time::{Span, Time};
use poolkeeper::pace::{
    AGES_IN, Admission, AdmissionAnswer, CallCost, PacedOperation, ResponseHints, Ticket,
};

use crate::pace::server::set;
use crate::pace::stage::at;
use crate::support::long::long_or;

/// A pool that asks for one thing again and again.
struct Asker {
    pool: usize,
    operation: PacedOperation,
    machines: u32,
    /// Between an answer and the next ask.
    pause: Span,
    waits: Option<(Ticket, Time)>,
    next: Time,
    longest: Span,
    served: u32,
}

impl Asker {
    fn new(pool: usize, operation: PacedOperation, pause: Span) -> Self {
        let (waits, longest) = (None, Span::ZERO);
        Self { pool, operation, machines: 1, pause, waits, next: at(0), longest, served: 0 }
    }

    fn act(&mut self, gate: &mut Admission, now: Time) {
        let asked = match self.waits {
            Some((ticket, _)) => gate.look(ticket, now),
            None if self.next > now => return,
            None => {
                let (set, before) = (set(self.pool), Some(Time::from_millis(i64::MAX)));
                let (operation, machines) = (self.operation, self.machines);
                gate.ask(&CallCost { set: &set, operation, machines, before }, now)
            }
        };
        match asked {
            AdmissionAnswer::Go(grant) => {
                gate.observe(grant, &ResponseHints::default(), now);
                let since = self.waits.take().map_or(now, |(_, since)| since);
                self.longest = self.longest.max(now.since(since));
                self.served += 1;
                self.next = now.plus(self.pause);
            }
            AdmissionAnswer::Wait(ticket, _) => {
                self.waits.get_or_insert((ticket, now));
            }
            AdmissionAnswer::NotNow(why) => panic!("it has all the time there is: {why:?}"),
        }
    }
}

fn run(askers: &mut [Asker], span: Span) {
    let mut gate = Admission::default();
    let tick = long_or(20, 80);
    for now in (0..span.millis() / tick).map(|number| at(number * tick)) {
        for asker in askers.iter_mut() {
            asker.act(&mut gate, now);
        }
    }
    // Whoever still waits has waited at least so long.
    for asker in askers {
        let since = asker.waits.map_or(at(span.millis()), |(_, since)| since);
        asker.longest = asker.longest.max(at(span.millis()).since(since));
    }
}

#[test]
fn a_raise_is_served_beside_a_hundred_pools_that_never_stop_deleting() {
    // 100 deletes at a time, 500 a minute: what is asked for is a dozen times what there is.
    let deletes = |pool| Asker::new(pool, PacedOperation::Delete, Span::seconds(1));
    let mut askers: Vec<Asker> = (0..100).map(deletes).collect();
    askers.push(Asker::new(100, PacedOperation::Reimage, Span::seconds(40)));
    run(&mut askers, Span::minutes(12));
    // Reimages and deletes share 500 a minute; whoever is before it is one call of each other pool.
    let bound = AGES_IN.times(3).plus(Span::from_millis(101 * 60_000 / 500));
    let reimage = &askers[100];
    assert!(reimage.served >= 6 && reimage.longest <= bound, "{} {bound}", reimage.longest);
    let (least, most) = (0..100).fold((u32::MAX, 0), |(least, most), n| {
        (least.min(askers[n].served), most.max(askers[n].served))
    });
    assert!(most - least <= 1, "by turns: {least} to {most}");
}

#[test]
fn a_read_of_a_pool_at_rest_is_served_beside_all_that_is_urgent() {
    let mut askers: Vec<Asker> = Vec::new();
    for pool in 0..200 {
        askers.push(Asker::new(pool, PacedOperation::Poll, Span::ZERO));
    }
    askers.push(Asker::new(200, PacedOperation::ReadSet, Span::seconds(5)));
    run(&mut askers, Span::minutes(5));
    let bound = AGES_IN.times(3).plus(Span::from_millis(201 * 40));
    let rest = &askers[200];
    assert!(rest.served >= 6 && rest.longest <= bound, "{} {}", rest.served, rest.longest);
    let polls = askers[..200].iter().map(|asker| asker.longest).max().unwrap();
    assert!(polls <= bound, "{polls}");
}

#[test]
fn a_great_batch_is_not_passed_for_ever_by_small_ones() {
    let mut askers: Vec<Asker> =
        (0..40).map(|pool| Asker::new(pool, PacedOperation::Delete, Span::ZERO)).collect();
    for asker in &mut askers {
        asker.machines = 50;
    }
    let mut great = Asker::new(40, PacedOperation::Delete, Span::seconds(30));
    great.machines = 1_000;
    askers.push(great);
    run(&mut askers, Span::minutes(15));
    // 2,000 machines a minute: one batch of each other pool, and itself.
    let bound = AGES_IN.times(3).plus(Span::seconds((40 * 50 + 1_000) * 60 / 2_000));
    assert!(askers[40].served >= 5 && askers[40].longest <= bound, "{}", askers[40].longest);
}

#[test]
fn a_pool_that_asks_much_takes_nothing_from_one_that_asks_little() {
    let mut askers: Vec<Asker> =
        (0..300).map(|_| Asker::new(0, PacedOperation::ReadOther, Span::ZERO)).collect();
    askers.push(Asker::new(1, PacedOperation::ReadOther, Span::seconds(2)));
    run(&mut askers, Span::minutes(3));
    assert!(askers[300].longest <= Span::seconds(11), "{}", askers[300].longest);
}
