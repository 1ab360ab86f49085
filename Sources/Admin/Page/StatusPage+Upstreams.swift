// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import Proxy

// The upstreams: a line for each, which opens to its place, its logins, and the answers to its exchanges.
extension StatusPage {
    func writeUpstreams(to page: inout HTMLText) {
        let readings = Dictionary(report.proxy.upstreams.map { ($0.name, $0) }) { first, _ in first }
        let logins = report.health.loginsByUpstream
        page.markup("<section><h2>Upstreams</h2>\n")
        for name in report.health.upstreams {
            write(name, logins[name] ?? [], readings[name], to: &page)
        }
        page.markup("</section>\n")
    }

    private func write(
        _ name: String, _ logins: [HealthReport.Login], _ reading: UpstreamReading?, to page: inout HTMLText
    ) {
        let outcomes = recent.outcomes(of: name)
        let state = state(of: name, logins, outcomes.map(\.count))
        page.element("<details class=\"upstream\" id=\"u-", name, "\"")
        // A failing upstream is shown open, and so is a single one.
        if state.tone == .bad || report.health.upstreams.count == 1 { page.markup(" open") }
        page.markup("><summary>")
        page.pill(state.tone, state.words)
        page.element(" <b>", name, "</b>")
        if let place = places[name] { page.element(" <code>", place.url, "</code>") }
        let count = outcomes.reduce(0) { $0 &+ $1.count.recent(now: now) }
        page.element(
            " <span class=\"dim\">", "\(readableNumber(count)) \(count == 1 ? "request" : "requests") in 10 min",
            "</span></summary>\n")
        writePlace(of: name, to: &page)
        for login in logins { write(login, to: &page) }
        if logins.isEmpty { page.markup("<p class=\"dim\">No challenge is configured.</p>\n") }
        write(outcomes, of: name, to: &page)
        writeDurations(reading, to: &page)
        page.markup("</details>\n")
    }

    /// The state of an upstream in words, the worst first.
    private func state(
        of name: String, _ logins: [HealthReport.Login], _ counts: [RecentCount]
    ) -> (tone: HTMLText.Tone, words: String) {
        if case .down? = report.health.checks[name]?.state { return (.bad, "check fails") }
        if let failing = recent.failing(name, now: now) {
            return failing.count > 1 ? (.bad, "every request fails") : (.busy, "last request failed")
        }
        for login in logins {
            if let failure = login.sessionState.failure { return (.bad, failure.code.rawValue) }
        }
        if logins.contains(where: { latch(of: $0) != nil }) { return (.bad, "latched") }
        for login in logins {
            if case .loggingIn = login.sessionState { return (.busy, "logging in") }
        }
        return counts.contains { $0.recent(now: now) > 0 } ? (.good, "answering") : (.quiet, "no request lately")
    }

    private func latch(of login: HealthReport.Login) -> ClosedLatch? {
        report.health.latches.first { $0.challenge == login.challenge || login.asks.contains($0.challenge) }
    }

    private func writePlace(of name: String, to page: inout HTMLText) {
        page.markup("<dl>")
        if let failing = recent.failing(name, now: now) {
            page.element("<dt>Now</dt><dd class=\"end\">", words(of: failing), "</dd>")
        }
        if let place = places[name] {
            page.element("<dt>URL</dt><dd><code>", place.url, "</code></dd>")
            let listeners = place.listeners.isEmpty ? "none" : place.listeners.joined(separator: ", ")
            page.element("<dt>Listeners</dt><dd>", listeners, "</dd>")
        }
        if let check = report.health.checks[name] {
            var words: String
            switch check.state {
            case .down(let reason): words = "fails: \(reason)"
            case .unknown(let reason): words = "unknown: \(reason)"
            case .up: words = "passes"
            }
            words += ", for \(readableTime(milliseconds: now.saturatingSubtract(check.since)))"
            if let asked = check.askedAt { words += ", last asked \(readableAge(of: asked, now: now))" }
            page.element("<dt>Check</dt><dd>", words, "</dd>")
        }
        page.markup("</dl>\n")
    }

    private func write(_ login: HealthReport.Login, to page: inout HTMLText) {
        page.markup("<div class=\"login\">")
        var words = ""
        switch login.sessionState {
        case .cold:
            page.pill(.quiet, "no session yet")
        case .loggingIn(let waiters, let failure):
            page.pill(.busy, "logging in")
            words = waiters == 1 ? "1 waits" : "\(waiters) wait"
            if let failure {
                page.markup(" ")
                page.pill(.bad, failure.code.rawValue)
                words += ". \(failure.detail)"
            }
        case .held(let held):
            page.pill(.good, "session held")
            words = "for \(readableTime(milliseconds: now.saturatingSubtract(held.establishedAt)))"
            if held.isTakenOver { words += ", taken over" }
            if let next = held.renewAt {
                words += ", renews in \(readableTime(milliseconds: next.saturatingSubtract(now)))"
            }
            if let end = held.session.expiresAt {
                words += ", ends in \(readableTime(milliseconds: end.saturatingSubtract(now)))"
            }
        case .failing(let failure):
            page.pill(.bad, failure.code.rawValue)
            words = failure.detail
        }
        page.element(" <b>", login.challenge, "</b>")
        if !login.credential.isEmpty { page.element(" <span class=\"dim\">", "by \(login.credential)", "</span>") }
        if !login.scope.isEmpty { page.element(" <code>", login.scope, "</code>") }
        if let latch = latch(of: login) {
            page.markup(" ")
            page.pill(.bad, "latched \(readableAge(of: latch.latch.closedAt, now: now))")
        }
        if !words.isEmpty { page.element("<p class=\"dim\">", words, "</p>") }
        page.markup("</div>\n")
    }

    /// Writes the answers as a table. Only the last ten minutes have the color of trouble.
    private func write(
        _ outcomes: [(outcome: UpstreamOutcome, count: RecentCount)], of name: String, to page: inout HTMLText
    ) {
        guard !outcomes.isEmpty else {
            page.markup("<p class=\"dim\">No request yet.</p>\n")
            return
        }
        page.markup(
            "<div class=\"scroll\"><table class=\"answers\"><thead><tr><th>Answers</th><th>10 min</th><th>In all</th>")
        page.markup("<th>Last</th></tr></thead><tbody>\n")
        for (outcome, count) in outcomes {
            let lately = count.recent(now: now)
            page.markup("<tr><td>")
            page.pill(lately == 0 ? .quiet : outcome.isFailure ? .bad : outcome.isGood ? .good : .quiet, outcome.name)
            page.element("</td><td data-name=\"10 min\">", readableNumber(lately), "</td>")
            page.element("<td data-name=\"in all\">", readableNumber(count.total), "</td>")
            page.element("<td data-name=\"last\">", readableAge(of: count.lastAt, now: now), "</td></tr>\n")
        }
        page.markup("</tbody></table></div>\n")
    }

    private func writeDurations(_ reading: UpstreamReading?, to page: inout HTMLText) {
        guard let reading, let whole = ProxyHistory.bound(of: reading.whole.counts, share: 0.99),
            let own = ProxyHistory.bound(of: reading.own.counts, share: 0.99)
        else { return }
        page.element(
            "<p class=\"dim\">",
            "Duration since the start: p99 ≤ \(readableTime(microseconds: whole)), of which Countersign "
                + "≤ \(readableTime(microseconds: own)).",
            "</p>\n")
    }
}
