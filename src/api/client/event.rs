//! Server-sent events: one event from its text.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub id: Option<u64>,
    /// The name of the event.
    pub event: Option<String>,
    pub data: String,
}

/// The text before the first empty line.
pub(super) fn take_block(read: &mut Vec<u8>) -> Option<String> {
    let end = read.windows(2).position(|two| two == b"\n\n")?;
    let block: Vec<u8> = read.drain(..end + 2).collect();
    Some(String::from_utf8_lossy(&block).into_owned())
}

/// `None`: a comment, or a reconnect delay.
pub(super) fn event(block: &str) -> Option<StreamEvent> {
    let field = |name: &str| {
        let lines =
            block.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'));
        lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect::<Vec<_>>()
    };
    let data = field("data");
    let id = field("id").last().and_then(|id| id.parse().ok());
    let event = field("event").last().map(|name| (*name).to_owned());
    (!data.is_empty()).then(|| StreamEvent { id, event, data: data.join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let sent = b"retry: 2000\n\nid: 7\nevent: held\ndata: {\"a\":1}\n\n: still here\n\ndata: x\ndata: y\n\n";
        for cut in 1..sent.len() {
            let (mut read, mut found) = (Vec::new(), Vec::new());
            for piece in sent.chunks(cut) {
                read.extend_from_slice(piece);
                while let Some(block) = take_block(&mut read) {
                    found.extend(event(&block));
                }
            }
            let event = Some("held".into());
            let held = StreamEvent { id: Some(7), event, data: "{\"a\":1}".into() };
            let plain = StreamEvent { id: None, event: None, data: "x\ny".into() };
            assert_eq!(found, [held, plain], "in pieces of {cut}");
        }
    }
}
