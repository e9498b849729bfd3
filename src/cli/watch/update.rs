//! How the screen changes with each event.

use super::state::{PoolPicture, WatchEffect, WatchEvent, WatchPicture, WatchState, WatchSubject};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::term::Style;
use crate::model::time::Span;

/// The longest pause between two readings while the stream of events is open, and while it is not. A turn that
/// changes nothing writes no event.
const CALM: Span = Span::seconds(15);
pub(super) const BLIND: Span = Span::seconds(5);
/// Facts of the history that can be scrolled.
const FACTS: usize = 500;
/// The pause after a reading that failed.
const RETRY: Span = Span::seconds(2);

impl WatchState {
    /// Takes one event in. The answer is what to do about it.
    pub(super) fn on(&mut self, event: WatchEvent) -> Option<WatchEffect> {
        match event {
            WatchEvent::Key(key) => return self.press(key),
            WatchEvent::Resize(wide, tall) => self.size = (wide, tall),
            WatchEvent::Beat => {}
            WatchEvent::Tick => return self.tick(),
            WatchEvent::News(at) => {
                self.reach(at);
                self.is_stale = true;
            }
            WatchEvent::Stream(is_open) => {
                self.is_live = is_open;
                self.is_stale = true;
            }
            WatchEvent::Reading(subject, answer) => self.take(&subject, answer),
            WatchEvent::Answer(answer) => self.answer(answer),
            WatchEvent::Narration(text) => self.narration = Some(text),
            WatchEvent::Suspend => return Some(WatchEffect::Suspend),
            WatchEvent::Signal(_) | WatchEvent::Stop => return Some(WatchEffect::Quit),
        }
        None
    }

    fn tick(&mut self) -> Option<WatchEffect> {
        self.age = self.age.plus(self.tick);
        self.since_try = self.since_try.plus(self.tick);
        self.now = self.now.map(|now| now.plus(self.tick));
        if self.reading.is_some() || !self.is_due() {
            return None;
        }
        let subject = self.subject();
        (self.reading, self.since_try, self.is_stale) = (Some(subject.clone()), Span::ZERO, false);
        Some(WatchEffect::Read(subject))
    }

    fn is_due(&self) -> bool {
        if self.lost.is_some() {
            return self.since_try >= RETRY;
        }
        let is_checked = self.next_check().zip(self.now).is_some_and(|(next, now)| now > next);
        let pause = if self.is_live { CALM } else { BLIND };
        // The turn of a check takes some seconds.
        self.is_stale || self.since_try >= pause || (is_checked && self.since_try >= RETRY)
    }

    fn take(&mut self, subject: &WatchSubject, answer: Result<WatchPicture, CommandFailure>) {
        if self.reading.as_ref() == Some(subject) {
            self.reading = None;
        }
        if *subject != self.subject() {
            // The person went elsewhere meanwhile.
            return;
        }
        match answer {
            Ok(WatchPicture::Pools(picture)) => {
                let all = picture.pools.iter();
                self.reach(all.filter_map(|pool| pool.status.at.map(|at| at.0)).max());
                self.pools = Some(picture);
                self.arrive();
            }
            Ok(WatchPicture::Pool(picture)) => {
                self.reach(picture.look.decided_at());
                self.reach(picture.lines.last().map(|line| line.at.0));
                self.show(*picture);
                self.arrive();
            }
            Err(failure) => self.lost = Some(words(&failure)),
        }
    }

    fn arrive(&mut self) {
        (self.age, self.lost) = (Span::ZERO, None);
    }

    fn show(&mut self, mut picture: PoolPicture) {
        let Some(open) = &mut self.open else { return };
        let mut later = std::mem::take(&mut picture.lines);
        later.retain(|line| Some(line.id) > open.told);
        open.told = later.last().map(|line| line.id).or(open.told);
        let facts = open.story.tell(&later);
        // New facts do not move what the person reads.
        open.scroll += if open.scroll > 0 { facts.len() } else { 0 };
        open.facts.extend(facts);
        open.facts.drain(..open.facts.len().saturating_sub(FACTS));
        open.scroll = open.scroll.min(open.facts.len().saturating_sub(1));
        open.picture = Some(picture);
    }

    fn answer(&mut self, answer: Result<(Exit, String), CommandFailure>) {
        self.sending = None;
        self.is_stale = true;
        match answer {
            Ok((Exit::Done, message)) => self.tell(message, Style::Green),
            Ok((_, message)) => self.tell(message, Style::Yellow),
            Err(failure) => self.tell(words(&failure), Style::Red),
        }
    }
}

/// A failure and its hint in one line.
pub(super) fn words(failure: &CommandFailure) -> String {
    match &failure.report.help {
        Some(help) => format!("{failure}; {help}"),
        None => failure.to_string(),
    }
}
