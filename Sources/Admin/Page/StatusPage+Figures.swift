// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Proxy

// The figures at the top, the latches, and the conversations.
extension StatusPage {
    func writeFigures(to page: inout HTMLText) {
        let last = intervals.last
        page.markup("<section class=\"figures\">\n")
        writeFigure(
            "Exchanges per second", last.map { "\(($0.rate * 10).rounded() / 10)" } ?? "–",
            Plot(values: intervals.map(\.rate), label: "exchanges per second, the last ten minutes"), to: &page)
        writeFigure(
            "Slowest in a hundred", last?.slowest.map { "≤ \(latency($0))" } ?? "–",
            Plot(
                values: intervals.map { $0.slowest.map { Double($0) } },
                label: "time of the slowest in a hundred, the last ten minutes"), to: &page)
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
            if case .winning(let waiters) = login.standing { sum + waiters } else { sum }
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
        page.markup("<section><h2>Latches</h2>\n<p>These credentials were refused and are not sent again.</p>\n")
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
            page.pill(conversation.success == .won ? .good : .busy, conversation.success.rawValue)
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
