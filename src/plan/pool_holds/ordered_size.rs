//! The holds that say where the size comes from while it is not the document's.

use crate::model::hold::HoldReason;
use crate::model::scale::DOCUMENT_FOLLOWS;
use crate::plan::basis::Basis;
use crate::plan::document_size;
use crate::plan::holds::Holds;

pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
    if let Some(why) = document_size::silence(basis.size) {
        let desired = i64::from(basis.memory.desired.count);
        let say = format!("no profile says how many machines; the size stays {desired}: {why}");
        holds.add(HoldReason::SizeUnknown, say).number("desired", desired);
    }
    let (count, now) = (basis.input.policy.count, basis.input.now);
    let Some(order) = basis.memory.scale.as_ref().filter(|order| order.outranks(count, now)) else {
        return;
    };
    if order.until.is_none() && order.to == count {
        return;
    }
    let until = order.until.map_or(String::new(), |until| format!(" until {until}"));
    let (to, by, why) = (order.to, &order.by, &order.why);
    let say = format!("scaled to {to}{until} by {by}: {why}; the pool's document says {count}");
    let hold = holds.add(HoldReason::ScaleOrder, say);
    hold.number("to", i64::from(to)).number("document", i64::from(count));
    hold.again(order.until.unwrap_or_else(|| order.at.plus(DOCUMENT_FOLLOWS)));
}
