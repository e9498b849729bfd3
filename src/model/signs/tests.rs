use super::*;
use crate::model::ids::{InstanceId, VmId};

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

#[test]
fn a_node_is_out_of_service_while_its_machine_is_off_and_leaves() {
    use Condition::{Deleting, Provisioning, Ready, Stopped, Unknown};
    use Lifecycle::{CutOff, Draining, InService, Standby};
    use MachineClass::{Current, Failed, Outdated};
    let since = Time::from_millis(1_000);
    let wish = |condition, lifecycle, class, seconds| {
        let (id, vm) = (InstanceId::new("1"), Some(VmId::new("vm-1")));
        let machine = Machine { since, ..Machine::new(id, vm, since, condition) };
        off(&machine, class, lifecycle, since.plus(Span::seconds(seconds)))
    };
    assert_eq!(wish(Stopped, InService, Failed, 120), SignWish::Set);
    assert_eq!(wish(Stopped, InService, Failed, 119), SignWish::Leave, "one listing may be old");
    assert_eq!(wish(Stopped, Draining, Outdated, 120), SignWish::Set);
    assert_eq!(wish(Stopped, InService, Outdated, 9_999), SignWish::Leave, "it may start again");
    for ours in [CutOff, Standby] {
        assert_eq!(wish(Stopped, ours, Current, 9_999), SignWish::Leave, "we switched it off");
    }
    for silent in [Unknown, Deleting] {
        assert_eq!(wish(silent, Draining, Failed, 9_999), SignWish::Leave, "{silent:?}");
    }
    for runs in [Ready, Provisioning] {
        assert_eq!(wish(runs, Draining, Failed, 9_999), SignWish::Lift, "{runs:?}");
    }
}
