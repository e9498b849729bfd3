//! The show: from the first look to the last machine, tick by tick.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::ending::Ending;
use super::screen::Screen;
use super::script::{Deed, Script};
use super::sight::Sight;
use super::stage::{Stage, Version};
use super::words::{self, Words};
use crate::cli::exit::{Exit, Failure};
use crate::cli::shell::Shell;
use crate::model::time::{Span, Time};

/// Between two pictures.
const TICK: Duration = Duration::from_millis(200);
/// It takes a fifth of this; what takes longer hangs.
const PATIENCE: Span = Span::minutes(10);

/// How it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Drawn,
    Lines,
    Silent,
}

#[derive(Debug)]
pub struct Show<'a> {
    pub stage: Stage,
    pub shell: &'a mut Shell,
    manner: Manner,
    screen: Screen,
    ticks: Interval,
    script: Script,
    told: Vec<Words>,
    last: Option<Sight>,
    /// When the new image was applied.
    since: Option<Time>,
    /// Lines of the picture that is there.
    drawn: usize,
}

impl<'a> Show<'a> {
    pub fn new(stage: Stage, shell: &'a mut Shell, manner: Manner) -> Self {
        let (times, api) = (stage.clock.times(), format!("http://{}", stage.api));
        let screen = Screen::new(shell.term, stage.began, times, api);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (script, told, last, since) = (Script::default(), Vec::new(), None, None);
        Self { stage, shell, manner, screen, ticks, script, told, last, since, drawn: 0 }
    }

    pub async fn play(&mut self) -> Result<Ending, Failure> {
        self.stage.apply(Version::Old).await?;
        let last = self.stage.began.plus(PATIENCE.times(i64::from(self.stage.clock.times())));
        loop {
            self.ticks.tick().await;
            let Some(sight) = self.step().await? else { continue };
            if self.script.is_told() && sight.is_over() {
                let took = self.since.map_or(Span::ZERO, |since| sight.decided.since(since));
                return Ok(Ending::of(&self.stage, sight, took));
            }
            if sight.at > last {
                let say = "the rollout did not come to its end";
                let help = "`poolkeeper demo --once` tells each line; please report them";
                return Err(Failure::new(Exit::Internal, "internal", say).help(help));
            }
        }
    }

    /// Looks, lets happen what comes next, and tells of both.
    async fn step(&mut self) -> Result<Option<Sight>, Failure> {
        if self.stage.has_ended() {
            let say = "the daemon ended by itself";
            return Err(Failure::new(Exit::Internal, "internal", say));
        }
        let Some(sight) = self.look().await else { return Ok(None) };
        let mut words = self.news().await?;
        words.extend(words::of_calls(self.last.as_ref(), &sight));
        if let Some(deed) = self.script.next(&sight) {
            self.carry_out(&deed).await?;
            words.push(words::of_deed(&deed, self.stage.now()));
        }
        self.tell(words)?;
        if self.manner == Manner::Drawn {
            self.draw(&sight)?;
        }
        self.last = Some(sight.clone());
        Ok(Some(sight))
    }

    async fn look(&self) -> Option<Sight> {
        match timeout(TICK, self.stage.look()).await {
            Ok(sight) => sight,
            // A turn that waits for Azure keeps the scene to itself: the last one stays.
            Err(_) => {
                let (at, calls) = (self.stage.now(), self.stage.calls());
                Some(Sight { at, calls, ..self.last.clone()? })
            }
        }
    }

    async fn news(&mut self) -> Result<Vec<Words>, Failure> {
        Ok(words::of_history(&self.stage.news().await?))
    }

    async fn carry_out(&mut self, deed: &Deed) -> Result<(), Failure> {
        match deed {
            Deed::NewImage => {
                self.since = Some(self.stage.now());
                self.stage.apply(Version::New).await
            }
            Deed::Sicken(id) => self.stage.sicken(id),
            Deed::Throttle => self.stage.throttle(),
        }
    }

    fn tell(&mut self, words: Vec<Words>) -> Result<(), Failure> {
        if self.manner == Manner::Lines && !words.is_empty() {
            for one in &words {
                self.shell.print(&self.screen.line(one))?;
            }
            self.shell.flush()?;
        }
        self.told.extend(words);
        Ok(())
    }

    fn draw(&mut self, sight: &Sight) -> Result<(), Failure> {
        let picture = self.screen.draw(sight, &self.told);
        let back = if self.drawn > 0 { format!("\u{1b}[{}A", self.drawn) } else { "\n".to_owned() };
        let mut page = back;
        for line in picture.lines() {
            // Each line ends what was there; nothing is hidden that an interrupt would leave hidden.
            page.extend(["\r", line, "\u{1b}[K\n"]);
        }
        self.drawn = picture.lines().count();
        self.shell.print(&page)?;
        self.shell.flush()
    }

    /// The rollout is over; what others ask for is told line by line. Ends only where something is wrong.
    pub async fn go_on(&mut self) -> Result<(), Failure> {
        self.manner = Manner::Lines;
        loop {
            self.ticks.tick().await;
            let words = self.news().await?;
            self.tell(words)?;
        }
    }

    /// Interrupted half-way.
    pub async fn cut_short(self) -> Result<(), Failure> {
        let say = match &self.last {
            Some(sight) => format!("Ended at {} of {} machines.", sight.done, sight.total),
            None => "Ended before it began.".to_owned(),
        };
        if self.manner != Manner::Silent {
            self.shell.print(&format!("\n{say} Nothing of it is left behind.\n"))?;
        }
        self.stage.end().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Format;
    use crate::cli::demo::screen::{TALL, WIDE};
    use crate::cli::demo::words::By;
    use crate::cli::term::Term;
    use crate::cli::text::width;

    /// Half an hour in seconds.
    const QUICK: u32 = 300;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_whole_show_keeps_its_promises_and_fits_a_small_terminal() {
        let anywhere = "127.0.0.1:0".parse().unwrap();
        let stage = Stage::set_up(Some(anywhere), QUICK).await.unwrap();
        let mut shell = Shell::new(Format::Table, Term::PLAIN);
        let mut show = Show::new(stage, &mut shell, Manner::Silent);
        show.stage.apply(Version::Old).await.unwrap();
        let (mut heights, mut looks) = (Vec::new(), Vec::new());
        let end = loop {
            show.ticks.tick().await;
            let Some(sight) = show.step().await.unwrap() else { continue };
            let picture = show.screen.draw(&sight, &show.told);
            assert!(picture.lines().all(|line| width(line) <= WIDE), "{picture}");
            heights.push(picture.lines().count());
            looks.extend(sight.machines.iter().map(|machine| machine.look));
            if show.script.is_told() && sight.is_over() {
                break sight;
            }
            assert!(sight.at.since(show.stage.began) < Span::hours(4), "{:#?}", show.told);
        };
        assert!(heights.iter().all(|tall| *tall == heights[0] && *tall <= TALL), "{heights:?}");
        let told = |part: &str| show.told.iter().any(|words| words.say.contains(part));
        for part in
            ["are out of date", "falls ill", "with 429", "1 outdated", "failed", "Succeeded"]
        {
            assert!(told(part), "{part} is not told: {:#?}", show.told);
        }
        assert!(show.told.iter().any(|words| words.by == By::Fate));
        let extremes = show.stage.extremes().unwrap();
        assert!(extremes.most_there <= end.limits.ceiling as usize, "{extremes:?}");
        assert!(extremes.fewest_ready + 1 >= end.limits.floor as usize, "{extremes:?}");
        let ending = Ending::of(&show.stage, end, Span::ZERO);
        assert!(ending.is_good());
        let document = ending.document();
        assert_eq!((&document["outdated"], &document["desired"]), (&0.into(), &30.into()));
        assert!(document["refused"].as_u64().unwrap() > 0, "{document}");
        show.stage.end().await.unwrap();
    }
}
