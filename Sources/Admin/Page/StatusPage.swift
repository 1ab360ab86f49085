// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
internal import ChallengeHandling
internal import Proxy

/// The place of an upstream: its URL, and the listeners that lead to it.
package struct UpstreamPlace: Sendable {
    /// The URL.
    package var url: String
    /// The addresses of the listeners, each with the route if it has several.
    package var listeners: [String]

    /// Makes a place.
    package init(url: String, listeners: [String]) {
        self.url = url
        self.listeners = listeners
    }
}

/// The page at `/`: the status for people, as one document without external resources. It is complete without JavaScript, and
/// refreshes itself with it.
package struct StatusPage: Sendable {
    /// All metrics.
    package var report: MetricsReport
    /// The last conversations, the latest first.
    package var conversations: [ConversationRecord]
    /// The recent history, the oldest interval first.
    package var intervals: [ProxyHistory.Interval]
    /// The outcomes of exchanges, with the time at which each was last seen.
    package var recent: RecentOutcomes
    /// The places of the upstreams, by name.
    package var places: [String: UpstreamPlace]

    /// Makes a page.
    package init(
        report: MetricsReport, conversations: [ConversationRecord], intervals: [ProxyHistory.Interval],
        recent: RecentOutcomes = RecentOutcomes(), places: [String: UpstreamPlace] = [:]
    ) {
        self.report = report
        self.conversations = conversations
        self.intervals = intervals
        self.recent = recent
        self.places = places
    }

    var now: Int64 { report.health.now }

    /// Returns the document. `nonce` authorizes its style and script; no others are accepted (Content Security Policy).
    package func html(nonce: String) -> String {
        var page = HTMLText()
        page.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        page.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        page.markup("<meta name=\"color-scheme\" content=\"light dark\">\n")
        page.element("<title>", "\(report.health.isReady ? "" : "! ")Countersign", "</title>\n")
        // No icon: otherwise a browser would request one from another address.
        page.markup("<link rel=\"icon\" href=\"data:,\">\n")
        // Not more often: it closes the lines that the reader has opened.
        page.markup("<noscript><meta http-equiv=\"refresh\" content=\"30\"></noscript>\n")
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

    /// Returns the Content Security Policy of the page.
    package static func policy(nonce: String) -> String {
        "default-src 'none'; style-src 'nonce-\(nonce)'; script-src 'nonce-\(nonce)'; connect-src 'self'; img-src data:; "
            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }

    private func writeHeader(to page: inout HTMLText) {
        page.markup("<header><h1>Countersign</h1>")
        if report.health.isReady { page.pill(.good, "ready") } else { page.pill(.bad, "not ready") }
        let uptime = readableTime(milliseconds: now.saturatingSubtract(report.process.startedAt))
        page.element("<p>", "Version \(report.health.version), up for \(uptime). ", "")
        let reload = report.reload
        if !reload.isSuccessful { page.pill(.bad, "last reload refused") }
        page.escaped(" Configuration loaded \(readableAge(of: reload.lastSuccessAt, now: now)).")
        page.element("<br>", Moment.text(now), "</p></header>\n")
        let troubles = troubles
        guard !troubles.isEmpty else { return }
        page.markup("<section class=\"trouble\"><h2>What is wrong</h2><ul>")
        for trouble in troubles { page.element("<li>", trouble, "</li>") }
        page.markup("</ul></section>\n")
    }

    private var troubles: [String] {
        let reasons = HealthDocument(.healthy, of: report.health).reasons
        var troubles = reasons
        if report.health.isAlive, !report.proxy.late.isEmpty {
            troubles.append("A worker does not answer; its figures are from an earlier moment.")
        }
        // A failed check or login is shown with more details.
        for name in report.health.upstreams {
            if reasons.contains(where: { $0.hasPrefix("\(name):") || $0.hasPrefix("\(name)/") }) { continue }
            guard let failing = recent.failing(name, now: now), failing.count >= Self.worthTelling else { continue }
            troubles.append("\(name): \(words(of: failing))")
        }
        return troubles
    }

    /// The number of consecutive failures from which an upstream is listed as failing.
    private static let worthTelling = 3

    /// Returns the failures of an upstream in words.
    func words(of failing: RecentOutcomes.Failing) -> String {
        let age = readableAge(of: failing.lastAt, now: now)
        guard failing.count > 1 else { return "the last request failed with \(failing.name), \(age)" }
        let since = readableTime(milliseconds: now.saturatingSubtract(failing.since))
        return "every request fails with \(failing.name): \(readableNumber(failing.count)) in \(since), the last \(age)"
    }
}
