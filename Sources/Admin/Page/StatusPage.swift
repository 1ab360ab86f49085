// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
internal import ChallengeHandling
internal import Proxy

/// The page at `/`: the status for people, as one document without external resources. It is complete without JavaScript, and
/// refreshes itself with it.
package struct StatusPage: Sendable {
    /// All metrics.
    package var report: MetricsReport
    /// The last conversations, the latest first.
    package var conversations: [ConversationRecord]
    /// The recent history, the oldest interval first.
    package var intervals: [ProxyHistory.Interval]

    /// Makes a page.
    package init(
        report: MetricsReport, conversations: [ConversationRecord], intervals: [ProxyHistory.Interval]
    ) {
        self.report = report
        self.conversations = conversations
        self.intervals = intervals
    }

    var now: Int64 { report.health.now }

    /// Returns the document. `nonce` marks its style and script as ours, and no others are accepted (Content Security Policy).
    package func html(nonce: String) -> String {
        var page = HTMLText()
        page.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        page.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        page.markup("<meta name=\"color-scheme\" content=\"light dark\">\n")
        page.element("<title>", "\(report.health.isReady ? "" : "! ")Countersign", "</title>\n")
        // No icon: otherwise a browser would request one from another address.
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

    /// Returns the Content Security Policy of the page.
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
            troubles.append("A worker does not answer; its figures are from an earlier moment.")
        }
        return troubles
    }
}

// The upstreams, each with its logins.
extension StatusPage {
    func writeUpstreams(to page: inout HTMLText) {
        let readings = report.proxy.upstreams
        page.markup("<section><h2>Upstreams</h2>\n<div class=\"cards\">\n")
        for name in report.health.upstreams {
            page.element("<article class=\"card\"><h3>", name, "</h3>\n")
            write(readings.first { $0.name == name }, of: name, to: &page)
            let logins = report.health.logins.filter { $0.upstream == name }
            if logins.isEmpty { page.markup("<p class=\"dim\">No challenge is configured.</p>\n") }
            for login in logins { write(login, to: &page) }
            page.markup("</article>\n")
        }
        page.markup("</div></section>\n")
    }

    private func write(_ reading: UpstreamReading?, of name: String, to page: inout HTMLText) {
        page.markup("<p class=\"classes\">")
        let responses = reading?.responses ?? []
        for kind in 2...5 {
            let count = responses.filter { $0.status / 100 == kind }.reduce(0) { $0 &+ $1.count }
            guard count > 0 else { continue }
            page.pill(kind < 4 ? .good : kind == 4 ? .quiet : .bad, "\(kind)xx \(readableNumber(count))")
            page.markup(" ")
        }
        let local = report.proxy.replies.filter { $0.key.upstream == name }
        for (kind, count) in local.sorted(by: { $0.key.code.rawValue < $1.key.code.rawValue }) {
            page.pill(.bad, "\(kind.code.rawValue) \(readableNumber(count))")
            page.markup(" ")
        }
        if responses.isEmpty, local.isEmpty { page.element("<span class=\"dim\">", "no request yet", "</span>") }
        page.markup("</p>\n")
        guard let reading, let whole = ProxyHistory.bound(of: reading.whole.counts, share: 0.99),
            let own = ProxyHistory.bound(of: reading.own.counts, share: 0.99)
        else { return }
        page.element(
            "<p class=\"dim\">",
            "99th percentile ≤ \(latency(whole)), of which countersign ≤ \(latency(own))",
            "</p>\n")
    }

    private func write(_ login: HealthReport.Login, to page: inout HTMLText) {
        page.markup("<div class=\"login\">")
        var words = ""
        switch login.sessionState {
        case .cold:
            page.pill(.quiet, "no session yet")
        case .loggingIn(let waiters):
            page.pill(.busy, "logging in")
            words = waiters == 1 ? "1 waits" : "\(waiters) wait"
        case .held(let held):
            page.pill(.good, "session held")
            words = "for \(readableTime(milliseconds: now.saturatingSubtract(held.establishedAt)))"
            if held.isTakenOver { words += ", taken over" }
            if let end = held.session.expiresAt {
                words += ", ends in \(readableTime(milliseconds: end.saturatingSubtract(now)))"
            }
        case .failing(let failure):
            page.pill(.bad, failure.code.rawValue)
            words = failure.detail
        }
        page.element(" <b>", login.challenge, "</b>")
        if !login.scope.isEmpty { page.element(" <code>", login.scope, "</code>") }
        page.element("<p class=\"dim\">", words, "</p></div>\n")
    }
}

// The figures at the top, the latches, and the conversations.
extension StatusPage {
    func writeFigures(to page: inout HTMLText) {
        let last = intervals.last
        page.markup("<section class=\"figures\">\n")
        writeFigure(
            "Exchanges per second", last.map { "\(($0.rate * 10).rounded() / 10)" } ?? "–",
            Plot(values: intervals.map(\.rate), label: "exchanges per second, the last ten minutes"), to: &page)
        writeFigure(
            "99th percentile", last?.percentile99.map { "≤ \(latency($0))" } ?? "–",
            Plot(
                values: intervals.map { $0.percentile99.map { Double($0) } },
                label: "99th percentile of the duration, the last ten minutes"), to: &page)
        let proxy = report.proxy
        writeFigure("Callers connected", "\(proxy.connections)", nil, to: &page)
        writeFigure("Exchanges under way", "\(proxy.exchanges)", nil, to: &page)
        writeFigure("Waiting for a login", "\(waiters)", nil, to: &page)
        writeFigure("Exchanges so far", readableNumber(proxy.begunExchanges), nil, to: &page)
        writeFigure(
            "Memory", "\(report.process.residentBytes >> 20) MiB", nil, to: &page)
        page.markup("</section>\n")
    }

    private var waiters: Int {
        report.health.logins.reduce(0) { sum, login in
            if case .loggingIn(let waiters) = login.sessionState { sum + waiters } else { sum }
        }
    }

    private func writeFigure(_ name: String, _ value: String, _ plot: Plot?, to page: inout HTMLText) {
        page.markup(plot == nil ? "<div class=\"figure\">" : "<div class=\"figure wide\">")
        page.element("<h3>", name, "</h3>")
        page.element("<p class=\"value\">", value, "</p>")
        plot?.write(to: &page)
        page.markup("</div>\n")
    }

    func writeLatches(to page: inout HTMLText) {
        let latches = report.health.latches
        guard !latches.isEmpty else { return }
        page.markup("<section><h2>Latches</h2>\n<p>These credentials were rejected and are not sent again.</p>\n")
        page.markup("<div class=\"scroll\"><table><thead><tr><th>Challenge</th><th>Credential</th><th>Why</th>")
        page.markup("<th>Closed</th><th>Opens</th><th>To open it</th></tr></thead><tbody>\n")
        for closed in latches {
            page.element("<tr><td>", closed.challenge, "</td>")
            page.element("<td>", closed.credential, "</td>")
            page.element("<td>", closed.refusal.why, "</td>")
            let age = now.saturatingSubtract(closed.latch.closedAt)
            page.element("<td>", "\(readableTime(milliseconds: age)) ago", "</td>")
            let opens = closed.latch.opensAt.map { "in \(readableTime(milliseconds: $0.saturatingSubtract(now)))" }
            page.element("<td>", opens ?? "when the value changes", "</td>")
            page.element("<td><code>", "countersign unlatch \(closed.challenge)", "</code></td></tr>\n")
        }
        page.markup("</tbody></table></div></section>\n")
    }

    func writeConversations(to page: inout HTMLText) {
        page.markup("<section><h2>Conversations</h2>\n")
        if conversations.isEmpty { page.markup("<p>No login has run yet.</p>\n") }
        for conversation in conversations { write(conversation, to: &page) }
        page.markup("</section>\n")
    }

    private func write(_ conversation: ConversationRecord, to page: inout HTMLText) {
        page.markup("<details id=\"")
        page.escaped("c\(conversation.beganAt)-\(conversation.key.challenge)")
        page.markup("\"><summary>")
        if let failure = conversation.failure {
            page.pill(.bad, failure.code.rawValue)
        } else if conversation.took == nil {
            page.pill(.busy, "under way")
        } else {
            page.pill(conversation.success == .succeeded ? .good : .busy, conversation.success.rawValue)
        }
        page.element(" <b>", conversation.key.challenge, "</b> ")
        let took = conversation.took.map { ", took \(readableTime(milliseconds: $0))" } ?? ""
        let ago = readableTime(milliseconds: now.saturatingSubtract(conversation.beganAt))
        page.element(
            "<span class=\"dim\">", "\(conversation.cause.rawValue), \(ago) ago\(took)", "</span></summary>\n<ol>")
        for step in conversation.steps {
            page.element("<li><time>", "+\(step.after) ms", "</time> ")
            page.escaped(step.text)
            page.markup("</li>")
        }
        if conversation.omitted > 0 { page.element("<li>", "… and \(conversation.omitted) steps more", "</li>") }
        if let failure = conversation.failure { page.element("<li class=\"end\">", failure.detail, "</li>") }
        page.markup("</ol></details>\n")
    }

    func latency(_ microseconds: UInt64) -> String {
        microseconds < 10_000
            ? "\(readableNumber(microseconds)) µs"
            : readableTime(milliseconds: Int64(clamping: microseconds / 1000))
    }
}
