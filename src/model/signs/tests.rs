use super::*;

#[test]
fn only_what_an_open_rollout_replaces_waits() {
    use Lifecycle::{Draining, InService};
    use MachineReason as Why;
    for why in [Why::WaitsFloor, Why::WaitsSurge, Why::WaitsWindow, Why::DrainBlocked] {
        assert_eq!(waits(true, InService, why), SignWish::Set, "{why:?}");
        assert_eq!(waits(false, InService, why), SignWish::Lift, "{why:?}");
        assert_eq!(waits(true, Draining, why), SignWish::Leave, "{why:?}");
    }
    for why in [Why::Fine, Why::HeldByPerson, Why::Exception, Why::WaitsPaused] {
        assert_eq!(waits(true, InService, why), SignWish::Lift, "{why:?}");
    }
    assert_eq!(waits(false, InService, Why::NotSeen), SignWish::Leave, "nothing is known");
    assert_eq!(waits(true, InService, Why::WaitsPicture), SignWish::Leave);
    assert_eq!(waits(false, InService, Why::WaitsPicture), SignWish::Lift);
    assert_eq!(waits(false, InService, Why::WaitsRollout), SignWish::Lift);
    assert_eq!(waits(true, InService, Why::WaitsRollout), SignWish::Leave, "it goes on soon");
    assert_eq!(waits(true, InService, Why::Restored), SignWish::Leave);
    assert_eq!(waits(false, InService, Why::Restored), SignWish::Lift, "it serves again");
    use MachineClass::{Current, DeleteRequested, Outdated};
    assert_eq!([Current, DeleteRequested, Outdated].map(is_on_target), [true, true, false]);
}
