// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
internal import ChallengeHandling
internal import Proxy

/// The page at `/`: all that the status says, for people. One document without anything from outside, complete without
/// JavaScript; with it, it brings itself up to date.
package struct StatusPage: Sendable {
    /// All figures.
    package var report: MetricsReport
    /// The last conversations, the latest first.
    package var conversations: [ConversationRecord]
    /// What happened of late, the oldest first.
    package var intervals: [ProxyHistory.Interval]

    /// A page.
    package init(
        report: MetricsReport, conversations: [ConversationRecord], intervals: [ProxyHistory.Interval]
    ) {
        self.report = report
        self.conversations = conversations
        self.intervals = intervals
    }

    var now: Int64 { report.health.now }

    /// The document. `nonce` marks its style and its script as ours: nothing else is taken for one (Content Security Policy).
    package func html(nonce: String) -> String {
        var page = HTMLText()
        page.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        page.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        page.markup("<meta name=\"color-scheme\" content=\"light dark\">\n")
        page.element("<title>", "\(report.health.isReady ? "" : "! ")Countersign", "</title>\n")
        // No icon: a browser would ask for one elsewhere.
        page.markup("<link rel=\"icon\" href=\"data:,\">\n")
        page.markup("<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n")
        page.element("<style nonce=\"", nonce, "\">")
        page.markup(PageAssets.style)
        page.markup("</style>\n</head>\n<body>\n<div id=\"page\">\n")
        writeHeader(to: &page)
        page.markup("<main>\n")
        writeFigures(to: &page)
        writeUpstreams(to: &page)
        writeLatches(to: &page)
        writeConversations(to: &page)
        page.markup("</main>\n</div>\n")
        page.element("<script nonce=\"", nonce, "\">")
        page.markup(PageAssets.script)
        page.markup("</script>\n</body>\n</html>\n")
        return page.text
    }

    /// The policy under which a browser shows it.
    package static func policy(nonce: String) -> String {
        "default-src 'none'; style-src 'nonce-\(nonce)'; script-src 'nonce-\(nonce)'; connect-src 'self'; img-src data:; "
            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }

    private func writeHeader(to page: inout HTMLText) {
        page.markup("<header><h1>Countersign</h1>")
        if report.health.isReady { page.pill(.good, "ready") } else { page.pill(.bad, "not ready") }
        page.markup("<p>")
        page.escaped("Version \(report.health.version), up for ")
        page.escaped(readableTime(milliseconds: now.saturatingSubtract(report.process.startedAt)))
        page.markup("</p></header>\n")
        let troubles = troubles
        guard !troubles.isEmpty else { return }
        page.markup("<section class=\"trouble\"><h2>What is wrong</h2><ul>")
        for trouble in troubles { page.element("<li>", trouble, "</li>") }
        page.markup("</ul></section>\n")
    }

    private var troubles: [String] {
        var troubles = HealthDocument(.healthy, of: report.health).reasons
        if report.health.isAlive, !report.proxy.late.isEmpty {
            troubles.append("A worker does not answer: its figures are old.")
        }
        return troubles
    }
}
