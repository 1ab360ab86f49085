// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import Proxy

// The figures at the top, the latches, and the conversations.
extension StatusPage {
    func writeFigures(to page: inout HTMLText) {
        page.markup("<section class=\"plots\">\n")
        writeFigure(
            "Exchanges per second", intervals.last.map { readableRate($0.rate) } ?? "–",
            note: "now; below, the last 10 min",
            to: &page,
            Plot(
                points: intervals.map { Plot.Point(at: $0.end, value: $0.rate) }, now: now, unit: .rate,
                label: "exchanges per second in the last ten minutes"))
        // Buckets have bounds, so a percentile is at most this.
        let latest = intervals.last { $0.percentile99 != nil }
        writeFigure(
            "Duration, p99", latest?.percentile99.map { "≤ \(readableTime(microseconds: $0))" } ?? "–",
            note: "\(latest.map { readableAge(of: $0.end, now: now) } ?? "none yet"); below, the last 10 min",
            to: &page,
            Plot(
                points: intervals.map { Plot.Point(at: $0.end, value: $0.percentile99.map { Double($0) }) }, now: now,
                unit: .time, label: "99th percentile of the duration of exchanges in the last ten minutes"))
        page.markup("</section>\n<section class=\"figures\">\n")
        let proxy = report.proxy
        let age = recent.lastExchangeAt.map { "last \(readableAge(of: $0, now: now))" }
        writeFigure("Exchanges so far", readableNumber(proxy.begunExchanges), note: age ?? "none yet", to: &page)
        writeFigure("Exchanges under way", "\(proxy.exchanges)", note: "of \(limit(proxy.exchangeLimit))", to: &page)
        writeFigure("Callers connected", "\(proxy.connections)", note: "of \(limit(proxy.connectionLimit))", to: &page)
        writeFigure("Waiting for a login", "\(waiters)", note: "now", to: &page)
        writeFigure(
            "Memory", readableSize(bytes: UInt64(clamping: report.process.residentBytes)), note: "resident", to: &page)
        page.markup("</section>\n")
    }

    private func limit(_ limit: Int) -> String { "\(readableNumber(UInt64(clamping: limit))) at most" }

    private var waiters: Int {
        report.health.logins.reduce(0) { sum, login in
            if case .loggingIn(let waiters, _) = login.sessionState { sum + waiters } else { sum }
        }
    }

    private func writeFigure(
        _ name: String, _ value: String, note: String? = nil, to page: inout HTMLText, _ plot: Plot? = nil
    ) {
        page.markup("<div class=\"figure\">")
        page.element("<h3>", name, "</h3>")
        page.element("<p class=\"value\">", value, "</p>")
        if let note { page.element("<p class=\"note\">", note, "</p>") }
        plot?.write(to: &page)
        page.markup("</div>\n")
    }

    func writeLatches(to page: inout HTMLText) {
        let latches = report.health.latches
        guard !latches.isEmpty else { return }
        page.markup("<section><h2>Latches</h2>\n<p>These credentials were rejected and are not sent again.</p>\n")
        page.markup(
            "<div class=\"scroll\"><table class=\"latches\"><thead><tr><th>Challenge</th><th>Credential</th><th>Why</th>"
        )
        page.markup("<th>Closed</th><th>Opens</th><th>To open it</th></tr></thead><tbody>\n")
        for closed in latches {
            page.element("<tr><td data-name=\"Challenge\">", closed.challenge, "</td>")
            page.element("<td data-name=\"Credential\">", closed.credential, "</td>")
            page.element("<td data-name=\"Why\">", closed.refusal.why, "</td>")
            page.element("<td data-name=\"Closed\">", readableAge(of: closed.latch.closedAt, now: now), "</td>")
            let opens = closed.latch.opensAt.map { "in \(readableTime(milliseconds: $0.saturatingSubtract(now)))" }
            page.element("<td data-name=\"Opens\">", opens ?? "when the value changes", "</td>")
            page.element(
                "<td data-name=\"To open it\"><code>", "countersign unlatch \(closed.challenge)", "</code></td></tr>\n")
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
        let ago = readableAge(of: conversation.beganAt, now: now)
        page.element(
            "<span class=\"dim\">", "\(conversation.cause.rawValue), \(ago)\(took)", "</span></summary>\n<ol>")
        for step in conversation.steps {
            page.element("<li><time>", "+\(readableTime(milliseconds: step.after))", "</time> ")
            page.escaped(step.text)
            page.markup("</li>")
        }
        if conversation.omitted > 0 { page.element("<li>", "… and \(conversation.omitted) steps more", "</li>") }
        if let failure = conversation.failure { page.element("<li class=\"end\">", failure.detail, "</li>") }
        page.markup("</ol></details>\n")
    }
}
