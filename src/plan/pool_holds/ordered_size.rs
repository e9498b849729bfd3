//! The hold that says where the size comes from while it is not the document's.

use crate::model::hold::HoldReason;
use crate::model::scale::DOCUMENT_FOLLOWS;
use crate::plan::basis::Basis;
use crate::plan::holds::Holds;

pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
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
