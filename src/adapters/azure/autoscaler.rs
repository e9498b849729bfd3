//! Autoscale settings: which profile applies at a time, and so between which sizes a set is kept.

use super::autoscale_document;
use super::windows_zones::iana_name;
use super::wire::autoscale::{
    FixedDateKeys, PortalName, ProfileKeys, ScheduleKeys, Setting, Whole,
};
use super::wire::{BorrowedText, some};
use crate::model::autoscaler::{Autoscaler, AutoscalerBounds, AutoscalerDocument};
use crate::model::calendar::{Cron, ScheduleZone, Window, Windows};
use crate::model::ids::ScaleSetId;
use crate::model::inventory::{PlatformFeature, SetReading};
use crate::model::time::Time;

/// A setting, as Azure shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedSetting {
    pub target: ScaleSetId,
    pub id: Box<str>,
    pub enabled: bool,
    /// `None`: it cannot be changed and put back.
    document: Option<AutoscalerDocument>,
    /// `None`: one of them could not be read.
    profiles: Option<Vec<CachedProfile>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CachedProfile {
    bounds: AutoscalerBounds,
    when: ProfileSchedule,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProfileSchedule {
    Always,
    Dated(Windows),
    /// It has no end: it applies until the next one begins.
    From(Cron, ScheduleZone),
}

impl CachedSetting {
    /// `None`: it names no target.
    pub fn read(text: &str) -> serde_json::Result<Option<Self>> {
        let setting: Setting<'_> = serde_json::from_str(text)?;
        let Some(target) = setting.target() else { return Ok(None) };
        let profiles = setting.profiles().ok();
        let rest = autoscale_document::rest(text);
        Ok(Some(Self {
            target: ScaleSetId::new(target),
            id: some(setting.id.as_ref()).unwrap_or_default().into(),
            enabled: setting.is_enabled(),
            document: rest.map(|rest| AutoscalerDocument::new(text, rest)),
            profiles: profiles
                .and_then(|profiles| profiles.iter().map(CachedProfile::read).collect()),
        }))
    }

    pub fn at(&self, now: Time) -> Autoscaler {
        let bounds = self.profiles.as_ref().and_then(|profiles| applying(profiles, now)).cloned();
        Autoscaler {
            setting: self.id.clone(),
            enabled: self.enabled,
            bounds,
            document: self.document.clone(),
        }
    }
}

/// The autoscale setting of a set, as far as known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AutoscalerSight {
    Known(Option<Autoscaler>),
    Unknown,
}

impl AutoscalerSight {
    pub fn show(self, set: &mut SetReading) {
        match self {
            Self::Unknown => set.platform_features_unknown.push(PlatformFeature::Autoscale),
            Self::Known(autoscaler) => set.show_autoscaler(autoscaler),
        }
    }
}

/// A date goes before a recurrence, and that before the default. Of several dates the first in the document applies, of
/// several recurrences the one that began last.
fn applying(profiles: &[CachedProfile], now: Time) -> Option<&AutoscalerBounds> {
    let dated = |profile: &&CachedProfile| match &profile.when {
        ProfileSchedule::Dated(window) => window.at(now).open,
        _ => false,
    };
    let began = |profile: &CachedProfile| match &profile.when {
        ProfileSchedule::From(cron, zone) => cron.prev_at_or_before(now, zone),
        _ => None,
    };
    let recurs = || {
        let begun = profiles.iter().filter_map(|profile| Some((began(profile)?, profile)));
        begun.max_by_key(|(at, _)| *at).map(|(_, profile)| profile)
    };
    let always = || profiles.iter().find(|profile| profile.when == ProfileSchedule::Always);
    let found = profiles.iter().find(dated).or_else(recurs).or_else(always);
    found.map(|profile| &profile.bounds)
}

impl CachedProfile {
    fn read(profile: &ProfileKeys<'_>) -> Option<Self> {
        let capacity = profile.capacity.as_ref()?;
        let bounds = AutoscalerBounds {
            profile: name(some(profile.name.as_ref()).unwrap_or_default()),
            minimum: capacity.minimum?.0,
            maximum: capacity.maximum?.0,
        };
        let when = match (&profile.fixed_date, &profile.recurrence) {
            (Some(date), _) => dated(date)?,
            (None, Some(recurrence)) => recurring(recurrence.schedule.as_ref()?)?,
            (None, None) => ProfileSchedule::Always,
        };
        Some(Self { bounds, when })
    }
}

/// Azure's portal ends a recurrence by a second profile whose name is a document.
fn name(written: &str) -> Box<str> {
    let portal: Option<PortalName<'_>> = serde_json::from_str(written).ok();
    portal.map_or_else(|| written.into(), |of| format!("{} for {}", &*of.name, &*of.of).into())
}

fn zone(name: Option<&BorrowedText<'_>>) -> Option<ScheduleZone> {
    some(name).map_or(Some(ScheduleZone::utc()), |name| ScheduleZone::get(iana_name(name)?).ok())
}

fn dated(date: &FixedDateKeys<'_>) -> Option<ProfileSchedule> {
    let zone = zone(date.time_zone.as_ref())?;
    let window = Window::dated(some(date.start.as_ref())?, some(date.end.as_ref())?, &zone).ok()?;
    Some(ProfileSchedule::Dated(Windows::new(vec![window], Vec::new()).ok()?))
}

/// On each of the days, at each of the hours, at each of the minutes.
fn recurring(schedule: &ScheduleKeys<'_>) -> Option<ProfileSchedule> {
    let days = schedule.days.as_ref()?.iter().map(|day| day.get(..3).unwrap_or(day));
    let numbers = |list: &Option<Vec<Whole>>| {
        let texts = list.iter().flatten().map(|number| number.0.to_string());
        texts.collect::<Vec<_>>().join(",")
    };
    let (minutes, hours) = (numbers(&schedule.minutes), numbers(&schedule.hours));
    let days = days.collect::<Vec<_>>().join(",");
    let cron = Cron::parse(&format!("{minutes} {hours} * * {days}")).ok()?;
    Some(ProfileSchedule::From(cron, zone(schedule.time_zone.as_ref())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str, (minimum, maximum): (u32, u32), when: &str) -> String {
        format!(
            r#"{{"name": "{name}", "capacity": {{"minimum": "{minimum}", "maximum": {maximum}, "default": "{minimum}"}},
                "rules": []{when}}}"#
        )
    }

    fn date(zone: &str, start: &str, end: &str) -> String {
        format!(r#", "fixedDate": {{"timeZone": "{zone}", "start": "{start}", "end": "{end}"}}"#)
    }

    fn weekly(zone: &str, days: &str, hour: u32, minute: u32) -> String {
        let days = days.split(' ').map(|day| format!("\"{day}\"")).collect::<Vec<_>>().join(",");
        format!(
            r#", "recurrence": {{"frequency": "Week", "schedule": {{"timeZone": "{zone}", "days": [{days}],
                "hours": [{hour}], "minutes": [{minute}]}}}}"#
        )
    }

    fn read(profiles: &[String]) -> CachedSetting {
        let text = format!(
            r#"{{"id": "/subscriptions/s/resourceGroups/rg/providers/microsoft.insights/autoscalesettings/web-scale",
                "properties": {{"enabled": true, "targetResourceUri": "/web", "profiles": [{}]}}}}"#,
            profiles.join(",")
        );
        CachedSetting::read(&text).unwrap().unwrap()
    }

    fn at(setting: &CachedSetting, time: &str) -> String {
        let bounds = setting.at(Time::parse(time).unwrap()).bounds;
        bounds.map_or_else(
            || "?".to_owned(),
            |b| format!("{} {}-{}", b.profile, b.minimum, b.maximum),
        )
    }

    #[test]
    fn one_profile_holds_always() {
        let found = read(&[profile("all", (2, 8), "")]).at(Time::from_millis(0));
        assert_eq!((found.name(), found.enabled), ("web-scale", true));
        assert_eq!(found.bounds.unwrap().to_string(), "2 to 8 machines (profile all)");
        assert_eq!(at(&read(&[]), "2026-03-01T12:00:00Z"), "?");
        let portal = r#"{\"name\":\"Auto created default scale condition\",\"for\":\"day\"}"#;
        let read = read(&[profile(portal, (1, 2), "")]);
        let says = "Auto created default scale condition for day 1-2";
        assert_eq!(at(&read, "2026-03-01T12:00:00Z"), says);
    }

    #[test]
    fn a_date_goes_before_a_recurrence_and_that_before_the_default() {
        let setting = read(&[
            profile("rest", (1, 2), ""),
            profile("day", (5, 20), &weekly("W. Europe Standard Time", "Monday Friday", 8, 30)),
            profile("night", (2, 3), &weekly("W. Europe Standard Time", "Monday Friday", 20, 0)),
            profile(
                "sale",
                (9, 30),
                &date("Pacific Standard Time", "2026-11-27T00:00:00", "2026-11-28T00:00:00"),
            ),
            profile("later", (9, 31), &date("UTC", "2026-11-27T09:00:00Z", "2026-11-29T00:00:00Z")),
        ]);
        for (time, is) in [
            // A Monday, in winter: Berlin is an hour ahead.
            ("2026-11-23T07:29:59Z", "night 2-3"),
            ("2026-11-23T07:30:00Z", "day 5-20"),
            ("2026-11-23T18:59:59Z", "day 5-20"),
            ("2026-11-23T19:00:00Z", "night 2-3"),
            ("2026-11-26T12:00:00Z", "night 2-3"),
            ("2026-11-27T07:59:59Z", "day 5-20"),
            ("2026-11-27T08:00:00Z", "sale 9-30"),
            ("2026-11-28T07:59:59Z", "sale 9-30"),
            ("2026-11-28T08:00:00Z", "later 9-31"),
            ("2026-11-29T00:00:00Z", "night 2-3"),
            // And in summer two.
            ("2026-07-06T06:30:00Z", "day 5-20"),
        ] {
            assert_eq!(at(&setting, time), is, "{time}");
        }
    }

    #[test]
    fn clocks_that_change_lose_no_profile() {
        let zone = "W. Europe Standard Time";
        let setting = read(&[
            profile("early", (4, 4), &weekly(zone, "Sunday", 2, 30)),
            profile("late", (2, 2), &weekly(zone, "Sunday", 4, 0)),
        ]);
        // On 29 March 02:30 is skipped, on 25 October it comes twice.
        for (time, is) in [
            ("2026-03-29T00:59:59Z", "late 2-2"),
            ("2026-03-29T01:00:00Z", "early 4-4"),
            ("2026-03-29T02:00:00Z", "late 2-2"),
            ("2026-10-25T00:29:59Z", "late 2-2"),
            ("2026-10-25T00:30:00Z", "early 4-4"),
            ("2026-10-25T01:30:00Z", "early 4-4"),
            ("2026-10-25T03:00:00Z", "late 2-2"),
        ] {
            assert_eq!(at(&setting, time), is, "{time}");
        }
    }

    #[test]
    fn who_scales_is_known_although_a_profile_is_odd() {
        let plain = || profile("all", (2, 8), "");
        let odd = [
            weekly("Middle-earth Standard Time", "Monday", 8, 0),
            weekly("UTC", "Someday", 8, 0),
            weekly("UTC", "Monday", 25, 0),
            date("UTC", "soon", "2026-11-28T00:00:00Z"),
            r#", "recurrence": {"frequency": "Week"}"#.to_owned(),
        ];
        for when in odd {
            let found = read(&[plain(), profile("odd", (1, 2), &when)]).at(Time::from_millis(0));
            assert_eq!((found.enabled, found.bounds), (true, None), "{when}");
        }
        for profiles in
            [r#"{"name": "none"}"#, r#"{"capacity": {"minimum": "few", "maximum": 2}}"#, "7"]
        {
            let found = read(&[plain(), profiles.to_owned()]).at(Time::from_millis(0));
            assert_eq!((found.enabled, found.bounds), (true, None), "{profiles}");
        }
    }
}
