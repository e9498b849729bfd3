//! A load curve as CSV: two columns, `time,load`.

use std::path::Path;

use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::api::v1::problem::DocumentProblem;
use crate::cli::exit::CommandFailure;
use crate::cli::output::Shell;
use crate::cli::source::SnapshotSource;
use crate::cli::text::{count, cut, plain, short};
use crate::model::time::{Span, Time};
use crate::sim::LoadCurve;

/// The most that is read of a file, and the most rows.
// 50,000: a row every minute for the longest test, 31 days, and some more.
const MOST_BYTES: usize = 4 << 20;
const MOST_ROWS: usize = 50_000;
/// A larger load is a mistake, and no page has room for its digits.
const LARGEST: f64 = 1e15;
/// A later offset is a mistake.
const LATEST: Span = Span::days(366);

/// A message quotes no more of a cell.
const QUOTED: usize = 40;

const TIMES: &str =
    "write 90m, 1d6h or seconds after the start, or a time such as 2026-03-02T07:00:00Z";

/// What is wrong with a row, and what to do.
struct RowFault {
    message: String,
    help: &'static str,
}

impl RowFault {
    fn of<T>(message: String, help: &'static str) -> Result<T, RowFault> {
        Err(RowFault { message, help })
    }
}

pub fn read(path: &Path, start: Time, shell: &Shell) -> Result<LoadCurve, CommandFailure> {
    let source = SnapshotSource::new(path);
    let bytes = source.read(shell, MOST_BYTES)?;
    curve(&bytes, start).map_err(|problem| {
        let file = source.file().unwrap_or_else(|| source.name());
        CommandFailure::bad_input(problem, Some(&file))
    })
}

fn fault(line: usize, code: Code, fault: RowFault) -> Diagnostic {
    let at = TextPlace { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 };
    let diagnostic = Diagnostic::new(at, "", code, fault.message);
    Diagnostic { help: Some(fault.help.to_owned()), ..diagnostic }
}

fn curve(bytes: &[u8], start: Time) -> Result<LoadCurve, DocumentProblem> {
    let mut faults = Vec::new();
    let points = points(bytes, start, &mut faults);
    if faults.is_empty() && points.is_empty() {
        let message = "there are no rows".to_owned();
        faults.push(fault(1, Code::Empty, RowFault { message, help: "write rows such as 0h,120" }));
    }
    match (LoadCurve::new(&points), DocumentProblem::of(&faults)) {
        (Some(curve), None) => Ok(curve),
        (_, Some(problem)) => Err(problem),
        (None, None) => {
            let say = "the times of the rows do not ascend";
            Err(DocumentProblem::new(TextPlace::START, "", Code::BadValue, say))
        }
    }
}

fn points(bytes: &[u8], start: Time, faults: &mut Vec<Diagnostic>) -> Vec<(Time, f64)> {
    let mut points: Vec<(Time, f64)> = Vec::new();
    let mut has_header = false;
    if bytes.len() > MOST_BYTES {
        let message = format!("the file is longer than {} MiB", MOST_BYTES >> 20);
        let help = "keep a row for every few minutes: between rows the load is a straight line";
        faults.push(fault(1, Code::TooLarge, RowFault { message, help }));
        return points;
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    for (line, row) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if row.trim_ascii().is_empty() {
            continue;
        }
        if points.len() == MOST_ROWS {
            let message = format!("there are more than {}", count(MOST_ROWS, "row"));
            let help = "keep a row for every few minutes: between rows the load is a straight line";
            faults.push(fault(line, Code::TooLarge, RowFault { message, help }));
            break;
        }
        let read = cells(row).and_then(|cells| match has_header {
            true => point(cells, start, points.last()).map(|point| points.push(point)),
            false => header(cells),
        });
        has_header = true;
        if let Err(wrong) = read {
            faults.push(fault(line, Code::BadValue, wrong));
        }
    }
    points
}

fn header([time, load]: [&str; 2]) -> Result<(), RowFault> {
    if time.eq_ignore_ascii_case("time") && load.eq_ignore_ascii_case("load") {
        return Ok(());
    }
    RowFault::of("the first line is not the header".to_owned(), "begin the file with: time,load")
}

/// The two cells of a row, without spaces and quotes around them.
fn cells(row: &[u8]) -> Result<[&str; 2], RowFault> {
    let Ok(row) = std::str::from_utf8(row) else {
        return RowFault::of("the line is not UTF-8".to_owned(), "save the file as UTF-8");
    };
    let mut cells = row.split(',').map(|cell| {
        let cell = cell.trim();
        let inner = cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"'));
        inner.unwrap_or(cell).trim()
    });
    match (cells.next(), cells.next(), cells.count()) {
        (Some(time), Some(load), 0) => Ok([time, load]),
        (_, None, _) => RowFault::of(
            "the line has one column, not two".to_owned(),
            "separate time and load with a comma",
        ),
        (_, _, more) => RowFault::of(
            format!("the line has {} columns, not two", more + 2),
            "keep time and load; write a decimal point, not a decimal comma",
        ),
    }
}

fn point(
    [time, load]: [&str; 2],
    start: Time,
    last: Option<&(Time, f64)>,
) -> Result<(Time, f64), RowFault> {
    let at = time_of(time, start)?;
    let quoted = cut(&plain(load), QUOTED);
    let Some(number) = load.parse().ok().filter(|load: &f64| load.is_finite()) else {
        return RowFault::of(
            format!("{quoted} is not a number"),
            "write a number such as 120 or 0.5",
        );
    };
    if !(0.0..=LARGEST).contains(&number) {
        let help = "write a load from 0 to 1e15";
        return RowFault::of(format!("the load is {quoted}"), help);
    }
    if let Some((before, _)) = last.filter(|(before, _)| at <= *before) {
        let message = match before.since(at) {
            Span::ZERO => "the row has the time of the row before it".to_owned(),
            early => format!("the row is {} before the row above it", short(early)),
        };
        return RowFault::of(
            message,
            "sort the rows by time; for a step, let a second lie between",
        );
    }
    Ok((at, number))
}

fn time_of(text: &str, start: Time) -> Result<Time, RowFault> {
    let offset = match text.parse::<u32>() {
        Ok(seconds) => Ok(Span::seconds(seconds.into())),
        Err(_) => Span::parse(text),
    };
    match offset {
        Ok(offset) if offset > LATEST => {
            RowFault::of("the time is more than a year after the start".to_owned(), TIMES)
        }
        Ok(offset) => Ok(start.plus(offset)),
        Err(_) => Time::parse(text).or_else(|_| {
            RowFault::of(format!("{} is not a time", cut(&plain(text), QUOTED)), TIMES)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_millis(1_772_366_400_000);

    fn read(text: &[u8]) -> Result<LoadCurve, String> {
        curve(text, START).map_err(|problem| {
            let help = problem.help.unwrap_or_default();
            format!("{}: {}; {help}", problem.line, problem.message)
        })
    }

    /// The load at hours after the start.
    fn loads<const N: usize>(text: &str, hours: [i64; N]) -> [String; N] {
        let curve = read(text.as_bytes()).unwrap_or_else(|why| panic!("{text}: {why}"));
        hours.map(|hour| format!("{:.1}", curve.at(START.plus(Span::hours(hour)))))
    }

    #[test]
    fn harmless_differences_are_tolerated() {
        for text in [
            "time,load\n0h,10\n2h,30\n",
            "\u{feff}time,load\r\n0h,10\r\n2h,30",
            "Time, Load\n\n 0s , 10 \n\n120m,30\n\n",
            "\"time\",\"load\"\n\"0\",\"10\"\n\"7200\",\"3e1\"\n",
            "time,load\n2026-03-01T12:00:00Z,10.0\n2026-03-01T15:00:00+01:00,30\n",
        ] {
            assert_eq!(loads(text, [0, 1, 2, 9]), ["10.0", "20.0", "30.0", "30.0"], "{text}");
        }
        assert_eq!(loads("time,load\n0h,0\n1d,24\n", [6, 30, 53]), ["6.0", "6.0", "5.0"]);
    }

    #[test]
    fn bad_rows_are_refused_with_line_cause_and_remedy() {
        for (rows, said) in [
            ("0h,1\nnoon,2", "3: noon is not a time; write 90m"),
            ("0h,1\n-1h,2", "3: -1h is not a time"),
            ("0h,1\n1.5,2", "3: 1.5 is not a time"),
            ("0h,1\n400d,2", "3: the time is more than a year after the start"),
            ("0h,1\n99999999999999999999,2", "3: 99999999999999999999 is not a time"),
            ("0h,ten", "2: ten is not a number; write a number such as"),
            ("0h,", "2:  is not a number"),
            ("0h,NaN", "2: NaN is not a number"),
            ("0h,inf", "2: inf is not a number"),
            ("0h,-1", "2: the load is -1; write a load from 0"),
            ("0h,1e300", "2: the load is 1e300"),
            ("2h,1\n1h,2", "3: the row is 1h before the row above it; sort the rows"),
            ("\n2h,1\n\n2h,2", "5: the row has the time of the row before it"),
            ("0h;1", "2: the line has one column, not two; separate time and load with a comma"),
            (
                "0h,\"1,5\"",
                "2: the line has 3 columns, not two; keep time and load; write a decimal",
            ),
            ("x,1\n0h,1\ny,1\nz,1", "2: x is not a time (and 2 more)"),
            ("", "1: there are no rows; write rows such as 0h,120"),
        ] {
            let why = read(format!("time,load\n{rows}\n").as_bytes()).expect_err(rows);
            assert!(why.starts_with(said), "{rows}: {why}");
        }
        let header = "1: the first line is not the header; begin the file with: time,load";
        assert_eq!(read(b"0h,1\n1h,2\n"), Err(header.to_owned()));
        let latin = read(b"time,load\n0h,1\n1h,\xe9\n");
        assert_eq!(latin, Err("3: the line is not UTF-8; save the file as UTF-8".to_owned()));
        assert_eq!(read(b""), Err("1: there are no rows; write rows such as 0h,120".to_owned()));
    }

    #[test]
    fn a_huge_file_is_refused() {
        let long = read(&vec![b'\n'; MOST_BYTES + 1]).expect_err("too long");
        assert!(long.starts_with("1: the file is longer than 4 MiB; keep a row"), "{long}");
        let rows = |many: usize| {
            let rows: Vec<String> = (0..many).map(|n| format!("{n},1")).collect();
            format!("time,load\n{}", rows.join("\n"))
        };
        let many = read(rows(MOST_ROWS + 1).as_bytes()).expect_err("too many");
        assert!(many.starts_with("50002: there are more than 50000 rows; keep a row"), "{many}");
        assert_eq!(read(rows(MOST_ROWS).as_bytes()).map(|curve| curve.rows()), Ok(MOST_ROWS));
    }
}
