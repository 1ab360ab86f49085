// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import DemoUpstream
internal import Glibc
internal import Synchronization

/// Tries the demonstration as its user would, from a thread of its own, and then ends the daemon as Ctrl-C would.
final class DemoTrial: Sendable {
    private let port: UInt16
    private let events: DemoEvents
    private let found = Mutex<[String]>([])

    init(port: UInt16, events: DemoEvents) {
        self.port = port
        self.events = events
    }

    /// What was not as it should be.
    var failures: [String] { found.withLock { $0 } }

    func start() {
        let isRunning = DemoThread.start { [self] in
            run()
            kill(getpid(), SIGTERM)
        }
        if !isRunning { complain("no thread could be started") }
    }

    private func run() {
        guard waitForProxy() else {
            complain("the proxy does not listen")
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
        for check in ["PinCodeAttempts", "oauth", "checks", "form"] {
            let logins = events.count { $0 == .answerAccepted(check: check) }
            if logins != 1 { complain("\(logins) logins reached \(check) instead of one") }
        }
        for scheme in ["Basic", "Digest"] {
            let refused = events.count { if case .unauthorized(_, scheme) = $0 { true } else { false } }
            if refused != 1 { complain("\(scheme) was asked for \(refused) times instead of once") }
        }
        for mistake in events.mistakes { complain("the upstream noticed: \(mistake)") }
    }

    private func expect(_ request: String, body: String = "", status: Int, holds text: String) {
        let length = body.isEmpty ? "" : "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        let answer = exchange("\(request) HTTP/1.0\r\nHost: 127.0.0.1\r\n\(length)\r\n\(body)") ?? ""
        let isRight = answer.hasPrefix("HTTP/1.1 \(status) ") && (text.isEmpty || answer.contains(text))
        Process.say("check: \(request): \(isRight ? "\(status), as it should be" : "wrong")")
        if !isRight { complain("\(request) was answered:\n\(answer)") }
    }

    private func complain(_ text: String) { found.withLock { $0.append(text) } }

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
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var time = timeval(tv_sec: 20, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        let result = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe Glibc.connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    /// One request and all of its answer, until the proxy closes.
    private func exchange(_ request: String) -> String? {
        guard let descriptor = connect() else { return nil }
        defer { close(descriptor) }
        let bytes = Array(request.utf8)
        let sent = unsafe bytes.withUnsafeBytes {
            unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == bytes.count else { return nil }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while answer.count < 1_000_000 {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            answer += buffer[..<count]
        }
        return String(decoding: answer, as: UTF8.self)
    }
}
