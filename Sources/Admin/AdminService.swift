// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
package import ChallengeHandling
package import Proxy
internal import Synchronization

/// The admin listener: health, readiness, metrics and status; over the Unix socket also changes.
package struct AdminService: LocalService {
    /// The functions of the process that the service uses.
    package struct Sources: Sendable {
        /// Returns the present state of the daemon.
        package var report: @Sendable () -> HealthReport
        /// Asks the workers for their readings. The callback is called when all have answered, which may be never.
        package var ask: @Sendable (_ done: @escaping @Sendable () -> Void) -> Void
        /// Returns all metrics, with the last reading of each worker.
        package var metrics: @Sendable () -> MetricsReport
        /// Returns the status page of the same metrics.
        package var page: @Sendable () -> StatusPage
        /// Opens the latches of a challenge.
        package var unlatch: Unlatching
        /// Drops the sessions of a challenge, or all sessions for `nil`; returns their number.
        package var dropSessions: @Sendable (_ challenge: String?) -> Int
        /// Runs a job on the thread that makes reports: they may take long. `nil` if there is no such thread.
        package var onThread: LaterAnswer.OnThread?
        /// Runs a command of the program as the daemon's user. The callback gets its output, or nil if one runs already.
        package var run: @Sendable (_ arguments: [String], _ done: @escaping @Sendable (CommandOutput?) -> Void) -> Void

        /// Opens the latches of a challenge. Calls `opened` with their numbers, and then `stored` when that is on disk, or could not
        /// be stored.
        package typealias Unlatching =
            @Sendable (
                _ challenge: String, _ opened: @escaping @Sendable (OpenedLatches) -> Void,
                _ stored: @escaping @Sendable () -> Void
            ) -> Void

        /// Makes a set of functions.
        package init(
            report: @escaping @Sendable () -> HealthReport,
            ask: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
            metrics: @escaping @Sendable () -> MetricsReport, page: @escaping @Sendable () -> StatusPage,
            unlatch: @escaping Unlatching,
            dropSessions: @escaping @Sendable (String?) -> Int, onThread: LaterAnswer.OnThread? = nil,
            run: @escaping @Sendable ([String], @escaping @Sendable (CommandOutput?) -> Void) -> Void
        ) {
            self.run = run
            self.onThread = onThread
            self.ask = ask
            self.metrics = metrics
            self.page = page
            self.report = report
            self.unlatch = unlatch
            self.dropSessions = dropSessions
        }
    }

    /// The timeout for the workers' readings; afterwards the last reading of a late worker is used.
    private static let timeout = Duration.milliseconds(500)
    /// The timeout of a command that the daemon runs, longer than the command's own.
    private static let commandTimeout = Duration.seconds(320)
    /// The timeout for an opened latch on its way to the disk; in memory it is open before that.
    private static let diskTimeout = Duration.seconds(5)

    private let sources: Sources

    /// Makes a service over `sources`.
    package init(sources: Sources) {
        self.sources = sources
    }

    /// Answers a request to the admin listener. Changes are refused except on the Unix socket.
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
        case ("GET", "/probe"), ("HEAD", "/probe"):
            return probe(request)
        case ("GET", "/"), ("HEAD", "/"):
            return page(for: request)
        case ("POST", "/unlatch"), ("POST", "/sessions/drop"):
            return change(request)
        case ("POST", "/login"), ("POST", "/doctor"):
            // Over the Unix socket `later` answers, unless it refuses a parameter.
            guard request.isUnixSocket, case .refused(let reason)? = DaemonCommand(request) else {
                return Self.socketOnly
            }
            return LocalReply(.badRequest, detail: reason).answer()
        case (_, "/livez"), (_, "/readyz"), (_, "/healthz"):
            return LocalReply(.methodNotAllowed, detail: "Use GET for \(request.path).")
                .answer(allow: Self.probeMethods)
        case (_, "/"), (_, "/status"), (_, "/metrics"), (_, "/probe"):
            return LocalReply(.methodNotAllowed, detail: "Use GET for \(request.path).").answer(allow: "GET, HEAD")
        case (_, "/unlatch"), (_, "/sessions/drop"), (_, "/login"), (_, "/doctor"):
            return LocalReply(.methodNotAllowed, detail: "Use POST for \(request.path).").answer(allow: "POST")
        default:
            return LocalReply(
                .noRoute,
                detail:
                    "The admin listener serves / for people, /livez, /readyz, /healthz, /metrics, /probe and /status; "
                    + "over the Unix socket also POST /unlatch, /sessions/drop, /login and /doctor."
            ).answer()
        }
    }

    /// Answers for one upstream as Prometheus' blackbox exporter does for a target: with status 200 also if the check
    /// failed.
    private func probe(_ request: LocalRequest) -> LocalAnswer {
        let checks = sources.report().checks
        guard let upstream = request.value(of: "upstream"), let reading = checks[upstream] else {
            let names = checks.keys.sorted().joined(separator: ", ")
            return LocalReply(
                .badRequest,
                detail: "Name an upstream that has a `check`: /probe?upstream=NAME. "
                    + (names.isEmpty ? "None has one." : "Those are \(names).")
            ).answer()
        }
        return LocalAnswer(
            status: 200, contentType: MetricsFormat.prometheus.contentType, body: Array(ProbeReport(reading).text.utf8))
    }

    /// HAProxy's `option httpchk` uses OPTIONS by default, which is answered like GET.
    private static let probeMethods = "GET, HEAD, OPTIONS"

    private func health(_ question: HealthDocument.Question, _ request: LocalRequest) -> LocalAnswer {
        var report = sources.report()
        if !request.isUnixSocket { report.removePaths() }
        let excluded = request.values(of: "exclude").flatMap { $0.split(separator: ",").map(String.init) }
        let document = HealthDocument(question, of: report, excluding: excluded)
        var answer = LocalAnswer.json(
            status: document.isWell ? 200 : 503, report.json(document, isVerbose: request.has("verbose")))
        if request.method == "OPTIONS" { answer.fields = [("Allow", Self.probeMethods)] }
        return answer
    }

    /// Returns an answer that waits for the workers' readings, for the thread that makes reports or, after an unlatching, for the
    /// disk; `nil` for other requests.
    package func later(_ request: LocalRequest) -> LaterAnswer? {
        if request.method == "POST", request.path == "/unlatch", request.isUnixSocket {
            return unlatch(request)
        }
        if request.method == "POST", request.isUnixSocket, case .run(let arguments)? = DaemonCommand(request) {
            return run(arguments)
        }
        guard ["GET", "HEAD", "OPTIONS"].contains(request.method) else { return nil }
        switch request.path {
        case "/", "/metrics", "/status": return report(request, after: sources.ask)
        case "/healthz", "/livez", "/readyz":
            if request.has("verbose") { return report(request, after: sources.ask) }
        case "/probe": break
        default: return nil
        }
        return sources.onThread == nil ? nil : report(request, after: { $0() })
    }

    /// Returns the answer with a report that is made on the thread for reports, if there is one: workers have no time for it.
    private func report(
        _ request: LocalRequest, after begin: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> LaterAnswer {
        LaterAnswer(timeout: Self.timeout, begin: begin, onThread: sources.onThread) { answer(request) }
    }

    private func run(_ arguments: [String]) -> LaterAnswer {
        let ended = Mutex<LocalAnswer?>(nil)
        return LaterAnswer(timeout: Self.commandTimeout) { done in
            sources.run(arguments) { output in
                let busy = LocalReply(.overloaded, detail: "The daemon runs another command at the moment. Try again.")
                ended.withLock { $0 = output.map { .json(status: 200, $0.json) } ?? busy.answer() }
                done()
            }
        } answer: {
            ended.withLock { $0 }
                ?? LocalReply(.overloaded, detail: "The command has not ended in time; the daemon's log has details.")
                .answer()
        }
    }

    private func status(for request: LocalRequest) -> LocalAnswer {
        let page = figures(for: request)
        var health = page.report.health
        if !request.isUnixSocket { health.daemon?.removePrivateTexts() }
        var status = health.json(HealthDocument(.ready, of: health), isVerbose: true)
        if case .object(var object) = status {
            object["conversations"] = .array(page.conversations.map(\.json))
            status = .object(object)
        }
        return .json(status: 200, status)
    }

    /// Returns the status page; over TCP, which every user of the machine can use, without the paths of logins.
    private func figures(for request: LocalRequest) -> StatusPage {
        var page = sources.page()
        guard !request.isUnixSocket else { return page }
        page.places = page.places.mapValues { UpstreamPlace(url: $0.url.withoutPaths, listeners: $0.listeners) }
        for index in page.conversations.indices { page.conversations[index].removePaths() }
        page.report.health.removePaths()
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
        guard request.isUnixSocket else { return Self.socketOnly }
        if request.path == "/sessions/drop" {
            return .json(status: 200, ["dropped": .integer(Int64(sources.dropSessions(request.value(of: "name"))))])
        }
        // `later` opens latches.
        return Self.unnamed
    }

    private func unlatch(_ request: LocalRequest) -> LaterAnswer {
        guard let name = request.value(of: "name"), !name.isEmpty else {
            return LaterAnswer(timeout: Self.diskTimeout, begin: { $0() }, answer: { Self.unnamed })
        }
        let opened = Mutex<OpenedLatches?>(nil)
        return LaterAnswer(timeout: Self.diskTimeout) { done in
            sources.unlatch(name, { latches in opened.withLock { $0 = latches } }, done)
        } answer: {
            opened.withLock { $0 }.map { LocalAnswer.json(status: 200, $0.json) }
                ?? LocalReply(.overloaded, detail: "The disk of the state directory does not answer. Try again.")
                .answer()
        }
    }

    private static var socketOnly: LocalAnswer {
        LocalReply(.callerNotAllowed, detail: "Changes are accepted over the Unix socket only.").answer()
    }

    private static var unnamed: LocalAnswer {
        LocalReply(.badRequest, detail: "Name the challenge: /unlatch?name=NAME.").answer()
    }
}

extension LocalAnswer {
    static func json(status: Int, _ value: JSONValue) -> LocalAnswer {
        LocalAnswer(
            status: status, contentType: "application/json", body: value.serialized() + [UInt8(ascii: "\n")])
    }
}

extension LocalRequest {
    /// Returns true if the query has that name, with or without a value.
    func has(_ name: String) -> Bool { value(of: name) != nil }

    /// Returns the first value of that name in the query.
    func value(of name: String) -> String? { values(of: name).first }

    /// Returns the values of that name in the query. Values are percent-decoded; names are compared as received,
    /// because the expected ones need no escapes.
    func values(of name: String) -> [String] { parameters.filter { $0.name == name }.map(\.value) }

    /// The names and values in the query, in order.
    var parameters: [(name: String, value: String)] {
        query.split(separator: "&").compactMap { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.first.map { (String($0), parts.count > 1 ? parts[1].unescaped : "") }
        }
    }
}

extension Substring {
    /// The text with its percent-encoded bytes decoded (RFC 3986 §2.1). Invalid escapes stay unchanged.
    fileprivate var unescaped: String {
        guard utf8.contains(UInt8(ascii: "%")) else { return String(self) }
        var bytes: [UInt8] = []
        var rest = Array(utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let code = Hex.byte(rest.first, rest.dropFirst().first) {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return TextRuns.broken(String(decoding: bytes, as: UTF8.self))
    }
}

extension OpenedLatches {
    fileprivate var json: JSONValue {
        ["opened": .integer(Int64(present)), "earlier": .integer(Int64(earlier))]
    }
}

extension ConversationRecord {
    /// The conversation for `/status`.
    var json: JSONValue {
        var object: [String: JSONValue] = [
            "challenge": .string(key.challenge), "credential": .string(key.credential), "scope": .string(key.scope),
            "by": .string(cause.rawValue), "began_at": .integer(beganAt / 1000),
            "steps": .array(
                steps.map { ["after_ms": .integer($0.after), "text": .string($0.text)] }),
            "took_ms": took.map { .integer($0) } ?? .null,
        ]
        if let failure {
            object["outcome"] = .string(failure.code.rawValue)
            object["detail"] = .string(failure.detail)
        } else {
            object["outcome"] = took == nil ? .null : .string(success.rawValue)
        }
        return .object(object)
    }
}

extension ConversationRecord {
    /// Removes the paths from the record, because callers may have chosen them, and they may name people or accounts.
    mutating func removePaths() {
        for index in steps.indices { steps[index].text = steps[index].text.withoutPaths }
        if let failure { self.failure?.detail = failure.detail.withoutPaths }
    }
}

extension HealthReport {
    /// Removes the paths from the reasons of logins that fail, and those of files.
    fileprivate mutating func removePaths() {
        unwritten?.removePaths()
        for index in latches.indices {
            guard let kind = latches[index].source?.kind else { continue }
            latches[index].source?.name = kind
        }
        for index in logins.indices {
            guard var failure = logins[index].sessionState.failure else { continue }
            failure.detail = failure.detail.withoutPaths
            if case .loggingIn(let waiters, _) = logins[index].sessionState {
                logins[index].sessionState = .loggingIn(waiters: waiters, after: failure)
            } else {
                logins[index].sessionState = .failing(failure)
            }
        }
    }
}

extension String {
    /// The text with an ellipsis in place of each path, alone or within an address.
    var withoutPaths: String {
        split(separator: " ", omittingEmptySubsequences: false).map(Self.withoutPath).joined(separator: " ")
    }

    private static func withoutPath(_ word: Substring) -> String {
        let start: Substring.Index
        if let scheme = word.firstRange(of: "://") {
            start = scheme.upperBound
        } else {
            start = word.firstIndex { !"\"'(<".contains($0) } ?? word.endIndex
            guard start < word.endIndex, word[start] == "/" else { return String(word) }
        }
        guard let slash = word[start...].firstIndex(of: "/") else { return String(word) }
        let end = word.lastIndex { !"\"')>,.:;".contains($0) } ?? slash
        // A lone slash reveals nothing.
        guard end > slash else { return String(word) }
        return "\(word[...slash])…\(word[word.index(after: end)...])"
    }
}
