//! The commands of operators. Each has one name: on the command line, in the API, in snapshots and in remedies.

macro_rules! commands {
    ($($command:ident = $name:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum CommandName {
            $($command,)*
        }

        impl CommandName {
            pub const fn name(self) -> &'static str {
                match self {
                    $(CommandName::$command => $name,)*
                }
            }
        }
    };
}

commands! {
    Abandon = "abandon";
    Abort = "abort";
    Approve = "approve";
    DeleteMachine = "delete-machine";
    Explain = "explain";
    Hold = "hold";
    Pause = "pause";
    Promote = "promote";
    Refresh = "refresh";
    Release = "release";
    ResetBreaker = "reset-breaker";
    ResetCapacity = "reset-capacity";
    Resume = "resume";
    ResumeAll = "resume-all";
    Retry = "retry";
    Rollback = "rollback";
    Scale = "scale";
    StopAll = "stop-all";
    TakeOver = "take-over";
    Undelete = "undelete";
}

impl CommandName {
    /// Its hold names the machine that the command is about.
    pub const fn is_of_a_machine(self) -> bool {
        matches!(self, CommandName::Abandon | CommandName::DeleteMachine | CommandName::Release)
    }
}
