// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Proxy

// The upstreams, each with its logins.
extension StatusPage {
    func writeUpstreams(to page: inout HTMLText) {
        let readings = report.proxy.upstreams
        page.markup("<section><h2>Upstreams</h2>\n<div class=\"cards\">\n")
        for name in report.health.upstreams {
            page.element("<article class=\"card\"><h3>", name, "</h3>\n")
            write(readings.first { $0.name == name }, of: name, to: &page)
            let logins = report.health.logins.filter { $0.upstream == name }
            if logins.isEmpty { page.markup("<p class=\"dim\">No challenge is answered here.</p>\n") }
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
            "99 of 100 within \(latency(whole)), our share \(latency(own))",
            "</p>\n")
    }

    private func write(_ login: HealthReport.Login, to page: inout HTMLText) {
        page.markup("<div class=\"login\">")
        var words = ""
        switch login.standing {
        case .cold:
            page.pill(.quiet, "no session yet")
        case .winning(let waiters):
            page.pill(.busy, "logging in")
            words = waiters == 1 ? "1 waits" : "\(waiters) wait"
        case .held(let held):
            page.pill(.good, "session held")
            words = "for \(readableTime(milliseconds: now.saturatingSubtract(held.wonAt)))"
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
