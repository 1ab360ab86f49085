// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc

/// A caller of the daemon's admin socket: one request, one answer, blocking.
struct AdminClient {
    /// An answer.
    struct Answer {
        let status: Int
        let body: JSONValue
    }

    let path: String
    /// How long an answer is waited for.
    var patience = Duration.seconds(30)

    init(path: String) { self.path = path }

    /// Sends one request; throws a `Failure` where nobody answers.
    func send(_ method: String, _ target: String) throws(Failure) -> Answer {
        let descriptor = try connect()
        defer { close(descriptor) }
        let request = Array("\(method) \(target) HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".utf8)
        let sent = unsafe request.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == request.count else { throw unavailable("it closed the connection") }
        let answer = receive(descriptor)
        guard let answer = parse(answer) else { throw unavailable("its answer cannot be read") }
        return answer
    }

    private func connect() throws(Failure) -> Int32 {
        guard let address = SocketAddress.unix(path) else {
            throw Failure("\(path): too long for a socket's path", code: EX_USAGE)
        }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw unavailable("no descriptor is left") }
        // None at all would be no limit.
        let limited = min(max(patience, .milliseconds(1)), .seconds(30)).components
        var limit = timeval(
            tv_sec: Int(limited.seconds), tv_usec: suseconds_t(limited.attoseconds / 1_000_000_000_000))
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let failure = SocketAddress.connect(descriptor, to: address)
        if failure == 0 { return descriptor }
        close(descriptor)
        if failure == EACCES {
            throw Failure("\(path): this user may not speak to the daemon; try sudo", code: EX_NOPERM)
        }
        throw unavailable(unsafe String(cString: strerror(failure)))
    }

    private func receive(_ descriptor: Int32) -> [UInt8] {
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while answer.count < 16_777_216 {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            answer += buffer[..<count]
        }
        return answer
    }

    private func parse(_ answer: [UInt8]) -> Answer? {
        let blank = Array("\r\n\r\n".utf8)
        guard let end = answer.indices.first(where: { answer[$0...].starts(with: blank) }),
            let status = String(decoding: answer.prefix(12), as: UTF8.self).split(separator: " ").last.flatMap({
                Int($0)
            })
        else { return nil }
        let body = Array(answer[(end + 4)...])
        let value = JSONValue(parsing: body, within: .local)
        return Answer(status: status, body: value ?? .string(String(decoding: body, as: UTF8.self)))
    }

    private func unavailable(_ reason: String) -> Failure {
        Failure("\(path): the daemon does not answer (\(reason)); is it running?", code: EX_UNAVAILABLE)
    }
}
