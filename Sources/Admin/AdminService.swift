// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Proxy

/// The admin listener: health, readiness, metrics, status; and over the Unix socket the calls that change something.
package struct AdminService: LocalService {
    /// What the service asks of the process.
    package struct Sources: Sendable {
        /// How everything stands now.
        package var report: @Sendable () -> HealthReport
        /// Asks the workers for their figures; what it is given is called when all have answered, which may be never.
        package var ask: @Sendable (_ done: @escaping @Sendable () -> Void) -> Void
        /// All figures, those of the workers as they were told last.
        package var metrics: @Sendable () -> MetricsReport
        /// The page for people, of the same figures.
        package var page: @Sendable () -> StatusPage
        /// Opens the latches of a challenge; returns how many those were.
        package var unlatch: @Sendable (_ challenge: String) -> Int
        /// Drops the sessions of a challenge, or all of them for `nil`; returns how many those were.
        package var dropSessions: @Sendable (_ challenge: String?) -> Int

        /// Sources.
        package init(
            report: @escaping @Sendable () -> HealthReport,
            ask: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
            metrics: @escaping @Sendable () -> MetricsReport, page: @escaping @Sendable () -> StatusPage,
            unlatch: @escaping @Sendable (String) -> Int,
            dropSessions: @escaping @Sendable (String?) -> Int
        ) {
            self.ask = ask
            self.metrics = metrics
            self.page = page
            self.report = report
            self.unlatch = unlatch
            self.dropSessions = dropSessions
        }
    }

    /// How long the workers' figures are waited for; of a loop that takes longer the last ones are told.
    private static let patience = Duration.milliseconds(500)

    private let sources: Sources

    /// A service over `sources`.
    package init(sources: Sources) {
        self.sources = sources
    }

    /// Answers one request at the admin listener; what changes something is refused elsewhere than on the Unix socket.
    package func answer(_ request: LocalRequest) -> LocalAnswer {
        switch (request.method, request.path) {
        case ("GET", "/livez"), ("HEAD", "/livez"), ("OPTIONS", "/livez"):
            return health(.alive, request)
        case ("GET", "/readyz"), ("HEAD", "/readyz"), ("OPTIONS", "/readyz"):
            return health(.ready, request)
        case ("GET", "/healthz"), ("HEAD", "/healthz"), ("OPTIONS", "/healthz"):
            return health(.healthy, request)
        case ("GET", "/status"), ("HEAD", "/status"):
            return status(for: request)
        case ("GET", "/metrics"), ("HEAD", "/metrics"):
            let format = MetricsFormat(accept: request.accept)
            return LocalAnswer(
                status: 200, contentType: format.contentType, body: Array(sources.metrics().text(format).utf8),
                fields: [("Vary", "Accept")])
        case ("GET", "/"), ("HEAD", "/"):
            return page(for: request)
        case ("POST", "/unlatch"), ("POST", "/sessions/drop"):
            return change(request)
        case (_, "/livez"), (_, "/readyz"), (_, "/healthz"):
            return LocalReply(.methodNotAllowed, detail: "\(request.path) is read with GET.")
                .answer(allow: Self.probeMethods)
        case (_, "/"), (_, "/status"), (_, "/metrics"):
            return LocalReply(.methodNotAllowed, detail: "\(request.path) is read with GET.").answer(allow: "GET, HEAD")
        case (_, "/unlatch"), (_, "/sessions/drop"):
            return LocalReply(.methodNotAllowed, detail: "\(request.path) takes POST.").answer(allow: "POST")
        default:
            return LocalReply(
                .noRoute,
                detail: "Here are / for people, /livez, /readyz, /healthz, /metrics, /status; over the Unix socket "
                    + "POST /unlatch and /sessions/drop."
            ).answer()
        }
    }

    /// HAProxy's `option httpchk` asks by OPTIONS where nobody tells it otherwise: it is answered as GET is.
    private static let probeMethods = "GET, HEAD, OPTIONS"

    private func health(_ question: HealthDocument.Question, _ request: LocalRequest) -> LocalAnswer {
        let report = sources.report()
        let excluded = request.values(of: "exclude").flatMap { $0.split(separator: ",").map(String.init) }
        let document = HealthDocument(question, of: report, excluding: excluded)
        var answer = LocalAnswer.json(
            status: document.isWell ? 200 : 503, report.json(document, isVerbose: request.has("verbose")))
        if request.method == "OPTIONS" { answer.fields = [("Allow", Self.probeMethods)] }
        return answer
    }

    /// What has figures in it is answered when every worker has told its own.
    package func later(_ request: LocalRequest) -> LaterAnswer? {
        guard ["GET", "HEAD", "OPTIONS"].contains(request.method) else { return nil }
        switch request.path {
        case "/", "/metrics", "/status": break
        case "/healthz", "/livez", "/readyz": if !request.has("verbose") { return nil }
        default: return nil
        }
        return LaterAnswer(patience: Self.patience, begin: sources.ask) { answer(request) }
    }

    private func status(for request: LocalRequest) -> LocalAnswer {
        let page = figures(for: request)
        let health = page.report.health
        var status = health.json(HealthDocument(.ready, of: health), isVerbose: true)
        if case .object(var object) = status {
            object["conversations"] = .array(page.conversations.map(\.json))
            status = .object(object)
        }
        return .json(status: 200, status)
    }

    /// Returns the figures; over TCP, where every user of the machine can ask, without the paths that logins have seen.
    private func figures(for request: LocalRequest) -> StatusPage {
        var page = sources.page()
        guard !request.isUnixSocket else { return page }
        for index in page.conversations.indices { page.conversations[index].removePaths() }
        return page
    }

    private func page(for request: LocalRequest) -> LocalAnswer {
        let nonce = String(UInt64.random(in: 0 ... .max), radix: 36) + String(UInt64.random(in: 0 ... .max), radix: 36)
        return LocalAnswer(
            status: 200, contentType: "text/html; charset=utf-8",
            body: Array(figures(for: request).html(nonce: nonce).utf8),
            fields: [
                ("Content-Security-Policy", StatusPage.policy(nonce: nonce)), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
            ])
    }

    private func change(_ request: LocalRequest) -> LocalAnswer {
        guard request.isUnixSocket else {
            return LocalReply(.callerNotAllowed, detail: "What changes something is taken over the Unix socket only.")
                .answer()
        }
        if request.path == "/sessions/drop" {
            return .json(status: 200, ["dropped": .integer(Int64(sources.dropSessions(request.value(of: "name"))))])
        }
        guard let name = request.value(of: "name"), !name.isEmpty else {
            return LocalReply(.badRequest, detail: "Say which challenge: /unlatch?name=NAME.").answer()
        }
        return .json(status: 200, ["opened": .integer(Int64(sources.unlatch(name)))])
    }
}
