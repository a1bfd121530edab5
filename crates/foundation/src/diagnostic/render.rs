//! Draws diagnostics over their source text.

use super::{Diagnostic, Diagnostics, Severity};
use crate::Span;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::ops::Range;

/// Whether to colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// For files and pipes.
    Plain,
    /// For terminals.
    Colored,
}

/// Lines up to this many bytes are handed to the renderer whole; it shows the part around the mark.
const LONG: usize = 4096;
/// How many bytes of a longer line are kept on each side of what is marked, so that a line of megabytes costs no
/// more than any other.
const CONTEXT: usize = 160;

/// How many diagnostics are drawn; the rest is counted.
const SHOWN: usize = 50;

impl Diagnostics {
    /// The diagnostics drawn over `text`, which stands in a file that is shown as `path`.
    pub fn render(&self, path: &str, text: &str, style: Style) -> String {
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Colored => Renderer::styled(),
        };
        let mut out = String::new();
        for diagnostic in self.iter().take(SHOWN) {
            out.push_str(&render_one(diagnostic, path, text, &renderer));
            out.push_str("\n\n");
        }
        if self.len() > SHOWN {
            out.push_str(&format!("… and {} more\n\n", self.len() - SHOWN));
        }
        out
    }
}

fn render_one(diagnostic: &Diagnostic, path: &str, text: &str, renderer: &Renderer) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.problem.to_string()).id(diagnostic.code());
    let mut group = Group::with_title(title);
    match diagnostic.place.span {
        Some(span) => {
            // Each line is drawn once: what is marked on it stands in one picture.
            let mut pictures = vec![(Window::around(text, span), vec![(span, None)])];
            for note in &diagnostic.notes {
                let span = note.place.span.unwrap_or(span);
                let mark = (span, Some(note.cause.to_string()));
                match pictures.iter_mut().find(|(window, _)| window.holds(span)) {
                    Some((_, marks)) => marks.push(mark),
                    None => pictures.push((Window::around(text, span), vec![mark])),
                }
            }
            for (window, marks) in pictures {
                let annotations = marks.into_iter().map(|(span, label)| {
                    let kind = match label {
                        None => AnnotationKind::Primary,
                        Some(_) => AnnotationKind::Context,
                    };
                    kind.span(window.relative(span)).label(label)
                });
                group = group.element(window.snippet(path).annotations(annotations));
            }
        }
        None => {
            if !diagnostic.place.path.is_empty() {
                group = group.element(Level::NOTE.message(format!("at {}", diagnostic.place.path)));
            }
            for note in &diagnostic.notes {
                let text = format!("at {}: {}", note.place.path, note.cause);
                group = group.element(Level::NOTE.message(text));
            }
        }
    }
    group = group.element(Level::HELP.message(diagnostic.help()));
    renderer.render(&[group])
}

/// The part of the text that is shown: whole lines, or the middle of a very long one.
struct Window<'a> {
    text: &'a str,
    bytes: Range<usize>,
    line: usize,
    /// How many characters of the line stand before what is shown.
    cut: usize,
}

impl<'a> Window<'a> {
    fn around(text: &'a str, span: Span) -> Window<'a> {
        let start = (span.start as usize).min(text.len());
        // A mark over many lines would hide what it is about: its first line is enough.
        let first_line_end =
            text[floor(text, start)..].find('\n').map_or(text.len(), |i| floor(text, start) + i);
        let end = (span.end as usize).clamp(start, first_line_end.max(start));
        let line_start = text[..floor(text, start)].rfind('\n').map_or(0, |i| i + 1);
        let bytes = if first_line_end - line_start <= LONG {
            line_start..first_line_end
        } else {
            floor(text, line_start.max(start.saturating_sub(CONTEXT)))
                ..ceil(text, first_line_end.min(end.min(start + CONTEXT) + CONTEXT)).max(ceil(text, start))
        };
        let line = text.as_bytes()[..bytes.start].iter().filter(|b| **b == b'\n').count() + 1;
        let cut = text[line_start..bytes.start].chars().count();
        Window { text, bytes, line, cut }
    }

    fn snippet<T: Clone>(&self, path: &str) -> Snippet<'a, T> {
        // The renderer counts columns from what it is given: say how much is missing.
        let path = match self.cut {
            0 => path.to_owned(),
            cut => format!("{path} (line cut: add {cut} to the column)"),
        };
        Snippet::source(&self.text[self.bytes.clone()]).line_start(self.line).path(path)
    }

    fn holds(&self, span: Span) -> bool {
        self.bytes.start <= span.start as usize && (span.end as usize) <= self.bytes.end
    }

    fn relative(&self, span: Span) -> Range<usize> {
        let start = (span.start as usize).clamp(self.bytes.start, self.bytes.end);
        let end = (span.end as usize).clamp(start, self.bytes.end);
        start - self.bytes.start..end - self.bytes.start
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// The nearest character boundary at or after `at`.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len())
}
