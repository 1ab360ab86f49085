// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import DemoUpstream
internal import Glibc
internal import Synchronization
internal import System

/// Test of the demonstration: sends requests on a separate thread, and then ends the daemon with a signal.
final class DemoCheck: Sendable {
    private let port: UInt16
    private let events: DemoEvents
    private let found = Mutex<[String]>([])

    init(port: UInt16, events: DemoEvents) {
        self.port = port
        self.events = events
    }

    /// Descriptions of all failures.
    var failures: [String] { found.withLock { $0 } }

    /// Starts the thread.
    func start() {
        do throws(ThreadError) {
            try startThread { [self] in
                run()
                kill(getpid(), SIGTERM)
            }
        } catch {
            fail(error.description)
        }
    }

    private func run() {
        guard waitForProxy() else {
            fail("the proxy does not listen")
            return
        }
        expect("GET /balance", status: 200, holds: "balance")
        expect("GET /balance", status: 200, holds: "balance")
        expect("POST /transfer", body: #"{"to":"savings","amount":5}"#, status: 201, holds: "savings")
        expect("GET /stream", status: 200, holds: "data:")
        for _ in 0..<2 { expect("GET /oauth/api/echo", status: 200, holds: "") }
        for _ in 0..<2 { expect("GET /checks/balance", status: 200, holds: "") }
        for path in ["/basic/", "/digest/"] {
            expect("GET \(path)", status: 200, holds: path)
            expect("GET \(path)again", status: 200, holds: path)
        }
        for request in ["GET /form/", "GET /form/again"] { expect(request, status: 200, holds: "\"method\":\"GET\"") }
        expect("POST /form/", body: "{}", status: 200, holds: "\"method\":\"POST\"")
        expect("GET /wrong/balance", status: 502, holds: "login-rejected")
        for _ in 0..<2 { expect("GET /wrong/balance", status: 503, holds: "login-latched") }
        let rejected = events.count { if case .answerRejected = $0 { true } else { false } }
        if rejected != 1 { fail("\(rejected) wrong answers instead of one") }
        for check in ["PinCodeAttempts", "oauth", "checks", "form"] {
            let logins = events.count { $0 == .answerAccepted(check: check) }
            if logins != 1 { fail("\(check): \(logins) logins instead of one") }
        }
        for scheme in ["Basic", "Digest"] {
            let refused = events.count { if case .unauthorized(_, scheme) = $0 { true } else { false } }
            if refused != 1 { fail("\(scheme): \(refused) challenges instead of one") }
        }
        for mistake in events.mistakes { fail("the upstream reports: \(mistake)") }
    }

    private func expect(_ request: String, body: String = "", status: Int, holds text: String) {
        let length = body.isEmpty ? "" : "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        let answer = exchange("\(request) HTTP/1.0\r\nHost: 127.0.0.1\r\n\(length)\r\n\(body)") ?? ""
        let isRight = answer.hasPrefix("HTTP/1.1 \(status) ") && (text.isEmpty || answer.contains(text))
        Process.print("check: \(request): \(isRight ? "\(status), as expected" : "unexpected answer")")
        if !isRight { fail("\(request): unexpected answer:\n\(answer)") }
    }

    private func fail(_ text: String) { found.withLock { $0.append(text) } }

    private func waitForProxy() -> Bool {
        for _ in 0..<500 {
            if let descriptor = connect() {
                close(descriptor)
                return true
            }
            usleep(10_000)
        }
        return false
    }

    private func connect() -> Int32? {
        guard let descriptor = try? Sockets.makeStream(AF_INET) else { return nil }
        Sockets.setTimeouts(descriptor, receive: .seconds(20))
        if (try? SocketAddress(loopbackPort: port).connect(descriptor)) != nil { return descriptor }
        close(descriptor)
        return nil
    }

    /// Sends one request and returns the answer up to the close of the connection.
    private func exchange(_ request: String) -> String? {
        guard let descriptor = connect() else { return nil }
        defer { close(descriptor) }
        guard DescriptorIO.sendAll(Array(request.utf8).span, on: descriptor) else { return nil }
        let answer = DescriptorIO.receiveAll(from: descriptor, atMost: 1_000_000)
        return String(decoding: answer, as: UTF8.self)
    }
}

/// First events of the demonstration's upstream.
final class DemoEvents: Sendable {
    private let events = Mutex<[DemoEvent]>([])
    /// Maximum number of events, so that a long demonstration does not grow.
    private static let capacity = 1000

    func add(_ event: DemoEvent) {
        events.withLock { if $0.count < Self.capacity { $0.append(event) } }
    }

    func count(where matches: (DemoEvent) -> Bool) -> Int { events.withLock { $0.count(where: matches) } }

    /// Events that show a mistake of the proxy.
    var mistakes: [DemoEvent] {
        events.withLock { events in
            events.filter { event in
                switch event {
                case .checkFailed, .noRequest: true
                default: false
                }
            }
        }
    }
}
