//! Plays the demo tick by tick, from the first read to the last machine.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::ending::DemoSummary;
use super::screen::Screen;
use super::script::{Script, ScriptStep};
use super::sight::DemoSight;
use super::stage::{DemoStage, DemoVersion};
use super::words::{self, Words};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::model::time::{Span, Time};

/// Interval between two pictures.
const TICK: Duration = Duration::from_millis(200);
/// Timeout of the demo in real time. It takes a fifth of this; a longer run hangs.
const PATIENCE: Span = Span::minutes(10);

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Drawn,
    Lines,
    Silent,
}

#[derive(Debug)]
pub struct Show<'a> {
    pub stage: DemoStage,
    pub shell: &'a mut Shell,
    manner: Manner,
    screen: Screen,
    ticks: Interval,
    script: Script,
    history: Vec<Words>,
    last: Option<DemoSight>,
    /// When the new image was applied.
    since: Option<Time>,
    /// The machines that the script made unhealthy.
    failed: Vec<Box<str>>,
    /// The number of lines of the picture on the screen.
    drawn: usize,
}

impl<'a> Show<'a> {
    pub fn new(stage: DemoStage, shell: &'a mut Shell, manner: Manner) -> Self {
        let (times, api) = (stage.clock.times(), format!("http://{}", stage.api));
        let screen = Screen::new(shell.term, stage.began, times, api);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            stage,
            shell,
            manner,
            screen,
            ticks,
            script: Script::default(),
            history: Vec::new(),
            last: None,
            since: None,
            failed: Vec::new(),
            drawn: 0,
        }
    }

    pub async fn play(&mut self) -> Result<DemoSummary, CommandFailure> {
        self.stage.apply(DemoVersion::Old).await?;
        let last = self.stage.began.plus(PATIENCE.times(i64::from(self.stage.clock.times())));
        loop {
            self.ticks.tick().await;
            let Some(sight) = self.step().await? else { continue };
            if self.script.is_told() && sight.is_over() {
                let took = self.since.map_or(Span::ZERO, |since| sight.decided.since(since));
                return Ok(DemoSummary::of(&self.stage, sight, took, &self.failed));
            }
            if sight.at > last {
                let say = "the rollout did not end";
                let help = "please report the output of `poolkeeper demo --once`";
                return Err(CommandFailure::new(Exit::Internal, "internal", say).help(help));
            }
        }
    }

    /// Reads the state, triggers the next event, and prints both.
    async fn step(&mut self) -> Result<Option<DemoSight>, CommandFailure> {
        if self.stage.has_ended() {
            let say = "the daemon ended by itself";
            return Err(CommandFailure::new(Exit::Internal, "internal", say));
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

    async fn look(&self) -> Option<DemoSight> {
        match timeout(TICK, self.stage.look()).await {
            Ok(sight) => sight,
            // A turn that waits for Azure locks the plan: keep showing the last one.
            Err(_) => {
                let (at, calls) = (self.stage.now(), self.stage.calls());
                Some(DemoSight { at, calls, ..self.last.clone()? })
            }
        }
    }

    async fn news(&mut self) -> Result<Vec<Words>, CommandFailure> {
        Ok(words::of_history(&self.stage.news().await?))
    }

    async fn carry_out(&mut self, deed: &ScriptStep) -> Result<(), CommandFailure> {
        match deed {
            ScriptStep::NewImage => {
                self.since = Some(self.stage.now());
                self.stage.apply(DemoVersion::New).await
            }
            ScriptStep::Sicken(id) => {
                self.failed.push(id.clone());
                self.stage.sicken(id)
            }
            ScriptStep::Throttle => self.stage.throttle(),
        }
    }

    fn tell(&mut self, words: Vec<Words>) -> Result<(), CommandFailure> {
        if self.manner == Manner::Lines && !words.is_empty() {
            for one in &words {
                self.shell.print(&self.screen.line(one))?;
            }
            self.shell.flush()?;
        }
        self.history.extend(words);
        Ok(())
    }

    fn draw(&mut self, sight: &DemoSight) -> Result<(), CommandFailure> {
        let picture = self.screen.draw(sight, &self.history);
        self.redraw(&picture)
    }

    /// Replaces the picture by a shorter one, so that the result fits below it.
    pub fn draw_end(&mut self) -> Result<(), CommandFailure> {
        match self.last.take() {
            Some(sight) if self.manner == Manner::Drawn => {
                let picture = self.screen.draw_end(&sight);
                self.redraw(&picture)
            }
            _ => Ok(()),
        }
    }

    fn redraw(&mut self, picture: &str) -> Result<(), CommandFailure> {
        let back = if self.drawn > 0 { format!("\u{1b}[{}A", self.drawn) } else { "\n".to_owned() };
        let mut page = back;
        for line in picture.lines() {
            // Each line erases the rest of the old one. The cursor stays visible: an interrupt would leave it hidden.
            page.extend(["\r", line, "\u{1b}[K\n"]);
        }
        // What is left below is of a longer picture.
        page.push_str("\u{1b}[J");
        self.drawn = picture.lines().count();
        self.shell.print(&page)?;
        self.shell.flush()
    }

    /// After the rollout, prints line by line what happens on requests of other clients. Returns only on an error.
    pub async fn go_on(&mut self) -> Result<(), CommandFailure> {
        self.manner = Manner::Lines;
        loop {
            self.ticks.tick().await;
            let words = self.news().await?;
            self.tell(words)?;
        }
    }

    /// Ends the demo after an interrupt.
    pub async fn cut_short(self) -> Result<(), CommandFailure> {
        let say = match &self.last {
            Some(sight) => {
                let (done, total) = sight.progress();
                format!("Ended at {done} of {total} machines.")
            }
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
    use crate::cli::demo::screen::{TALL, WIDE};
    use crate::cli::demo::words::Speaker;
    use crate::cli::output::OutputFormat;
    use crate::cli::term::Term;
    use crate::cli::text::width;

    /// Speed-up: half an hour passes in seconds.
    const QUICK: u32 = 300;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_whole_show_keeps_its_promises_and_fits_a_small_terminal() {
        let anywhere = "127.0.0.1:0".parse().unwrap();
        let stage = DemoStage::set_up(Some(anywhere), QUICK).await.unwrap();
        let small = Term { width: Some(80), height: Some(24), ..Term::PLAIN };
        let mut shell = Shell::new(OutputFormat::Table, small);
        let mut show = Show::new(stage, &mut shell, Manner::Silent);
        show.stage.apply(DemoVersion::Old).await.unwrap();
        let (mut heights, mut looks) = (Vec::new(), Vec::new());
        let end = loop {
            show.ticks.tick().await;
            let Some(sight) = show.step().await.unwrap() else { continue };
            let picture = show.screen.draw(&sight, &show.history);
            assert!(picture.lines().all(|line| width(line) <= WIDE), "{picture}");
            assert!(!picture.contains(" of 0"), "{picture}");
            heights.push(picture.lines().count());
            looks.extend(sight.machines.iter().map(|machine| machine.look));
            if show.script.is_told() && sight.is_over() {
                break sight;
            }
            assert!(sight.at.since(show.stage.began) < Span::hours(4), "{:#?}", show.history);
        };
        assert!(heights.iter().all(|tall| *tall == heights[0] && *tall <= TALL), "{heights:?}");
        let shows = |part: &str| show.history.iter().any(|words| words.say.contains(part));
        for part in
            ["are outdated", "fails by itself", "with 429", "1 outdated", "failed", "Succeeded"]
        {
            assert!(shows(part), "{part} is not told: {:#?}", show.history);
        }
        assert!(show.history.iter().any(|words| words.by == Speaker::Fate));
        let extremes = show.stage.extremes().unwrap();
        assert!(extremes.most_there <= end.limits.ceiling as usize, "{extremes:?}");
        assert!(extremes.fewest_ready + 1 >= end.limits.floor as usize, "{extremes:?}");
        let tall = Term { height: Some(40), ..small };
        let mut tall = Screen::new(tall, show.stage.began, QUICK, String::new());
        assert_eq!(tall.draw(&end, &show.history).lines().count(), 39);
        let floor = end.limits.floor as usize;
        let last = show.screen.draw_end(&end);
        assert!(last.contains("30 of 30") && !last.contains("waiting"), "{last}");
        let ending = DemoSummary::of(&show.stage, end, Span::ZERO, &show.failed);
        assert!(ending.is_good());
        // The result and the hints fit below the last picture, with a line for the cursor.
        let below = ending.page(small) + &ending.hints(small, "target/release/poolkeeper");
        assert!(below.lines().all(|line| width(line) <= 80), "{below}");
        assert!(last.lines().count() + below.lines().count() <= TALL, "{last}{below}");
        assert!(below.contains(" of 30 "), "{below}");
        let below_floor = extremes.fewest_ready < floor;
        let said = below.replace('\n', " ").contains("failed by itself");
        assert_eq!(said, below_floor, "{below}");
        let document = ending.document();
        assert_eq!((&document["outdated"], &document["desired"]), (&0.into(), &30.into()));
        assert!(document["refused"].as_u64().unwrap() > 0, "{document}");
        show.stage.end().await.unwrap();
    }
}
