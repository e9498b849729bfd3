//! Seeds that once failed, each with what went wrong in it.

pub const ONCE_FAILED: &[(u64, &str)] = &[
    (81, "a gate without a verdict was looked at four times a minute"),
    (
        175,
        "a delete that was accepted and overtaken was taken for undone, and old listings showed its machine",
    ),
    (542, "a ghost that was listed anew passed for the machine of a raise"),
    (730, "in place, a blocked drain made a machine that was taken away before it served"),
    (738, "the way back was taken for the revision that failed"),
    (907, "the same as in 730, three times in a row"),
    (1_172, "the raise of a lost machine ended its delete, for ever"),
    (1_844, "a delete in doubt whose machine was missed was taken for undone"),
    (2_090, "one that a delete may have taken was spent below the floor"),
    (2_441, "an updated machine that failed was kept for one that stood in"),
    (2_669, "an old listing made a serving machine look as if it had only begun"),
    (2_794, "beside a machine that was written off no hold asked a person to settle the capacity"),
    (3_559, "a number that counted deletes in a Flexible set was raised after two minutes"),
    (1_000_044, "surplus was put back for what was drained as outdated, and drained again in turn"),
    (1_000_317, "a machine that could not be put back was tried four times a minute"),
    (1_000_913, "surge was made on a model that is not the target, and taken away at once"),
    (1_000_933, "beside a cloud whose clock is behind, a refresh renewed what it had made"),
    (1_001_139, "the quota had room for one, and two were asked for, for ever"),
    (1_001_877, "a refusal of long ago made a model that was written look unwritten"),
    (1_003_152, "a machine that never came passed for a delete that the number counts to its end"),
    (1_004_656, "what stood in left below the floor though a delete may have taken others"),
];
