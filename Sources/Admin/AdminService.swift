// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Gateway

/// The admin listener: health, readiness, status; and over the Unix socket the calls that change something.
package struct AdminService: LocalService {
    /// What the service asks of the process.
    package struct Sources: Sendable {
        /// Whether every worker's loop has turned of late.
        package var isAlive: @Sendable () -> Bool
        /// How everything stands now.
        package var report: @Sendable () -> HealthReport
        /// Opens the latches of a challenge; returns how many those were.
        package var unlatch: @Sendable (_ challenge: String) -> Int
        /// Drops the sessions of a challenge, or all of them for `nil`; returns how many those were.
        package var dropSessions: @Sendable (_ challenge: String?) -> Int

        /// Sources.
        package init(
            isAlive: @escaping @Sendable () -> Bool, report: @escaping @Sendable () -> HealthReport,
            unlatch: @escaping @Sendable (String) -> Int, dropSessions: @escaping @Sendable (String?) -> Int
        ) {
            self.isAlive = isAlive
            self.report = report
            self.unlatch = unlatch
            self.dropSessions = dropSessions
        }
    }

    private let sources: Sources

    /// A service over `sources`.
    package init(sources: Sources) {
        self.sources = sources
    }

    /// Answers one request at the admin listener; what changes something is refused elsewhere than on the Unix socket.
    package func answer(_ request: LocalRequest) -> LocalAnswer {
        switch (request.method, request.path) {
        case ("GET", "/livez"), ("HEAD", "/livez"):
            let isAlive = sources.isAlive()
            return .text(status: isAlive ? 200 : 503, isAlive ? "ok\n" : "a worker's loop does not turn\n")
        case ("GET", "/readyz"), ("HEAD", "/readyz"), ("GET", "/healthz"), ("HEAD", "/healthz"):
            let report = sources.report()
            return .json(status: report.isReady ? 200 : 503, report.document(isVerbose: request.has("verbose")))
        case ("GET", "/status"), ("HEAD", "/status"):
            return .json(status: 200, sources.report().document(isVerbose: true))
        case ("POST", "/unlatch"), ("POST", "/sessions/drop"):
            return change(request)
        case (_, "/livez"), (_, "/readyz"), (_, "/healthz"), (_, "/status"):
            return LocalReply(.methodNotAllowed, detail: "\(request.path) is read with GET.").answer(allow: "GET, HEAD")
        case (_, "/unlatch"), (_, "/sessions/drop"):
            return LocalReply(.methodNotAllowed, detail: "\(request.path) takes POST.").answer(allow: "POST")
        default:
            return LocalReply(
                .noRoute,
                detail: "Here are /livez, /readyz, /healthz, /status; over the Unix socket POST /unlatch "
                    + "and /sessions/drop."
            ).answer()
        }
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
