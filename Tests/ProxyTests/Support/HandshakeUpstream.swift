// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Synchronization
import TestSupport

/// HTTP/1.1 server whose answers depend on the authentication message of a request. It records each connection.
///
/// Its script lists the answers to each kind of message, `kind: answer, answer; kind: answer`; the last one repeats. An
/// answer is a status, its challenges, and `close` if the connection ends after it. `end` ends the connection without an
/// answer. Requests below `/first` are accepted as a server has to, on a connection that then ends, and are not recorded.
final class HandshakeUpstream: Sendable {
    let port: UInt16
    private let listener: Int32
    private let log: Log

    init(_ script: String, scheme: String) throws {
        let (listener, port) = loopbackSocket()
        (self.listener, self.port) = (listener, port)
        guard listen(listener, 64) == 0 else { throw ScriptedUpstream.Problem(doing: "listen: \(errno)") }
        let log = Log(script, scheme)
        self.log = log
        inBackground {
            while case let accepted = Glibc.accept(listener, nil, nil), accepted >= 0 {
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                inBackground { log.serve(Peer(accepted: accepted)) }
            }
            _ = Glibc.close(listener)
        }
    }

    /// Its threads end by themselves once their peers are gone.
    deinit { _ = shutdown(listener, Int32(SHUT_RDWR)) }

    /// Requests of each connection that carried any, in the order of their first requests.
    var connections: [[String]] { log.state.withLock { $0.connections.map(\.requests) } }

    /// User and domain of each third message, and the user names of Basic.
    var users: Set<String> { log.state.withLock { $0.users } }

    /// Requests that lacked the caller's own field and had to have it.
    var lostFields: [String] { log.state.withLock { $0.lostFields } }
}

private final class Log: Sendable {
    struct State {
        var answers: [String: [String]] = [:]
        var accepted = 0
        var connections: [(number: Int, requests: [String])] = []
        var users: Set<String> = []
        var lostFields: [String] = []
    }

    let state: Mutex<State>
    private let scheme: String

    init(_ script: String, _ scheme: String) {
        var state = State()
        for part in script.components(by: "; ") {
            let halves = part.components(by: ": ")
            state.answers[halves[0]] = halves[1].components(by: ", ")
        }
        self.state = Mutex(state)
        self.scheme = scheme
    }

    func serve(_ peer: Peer) {
        let number = state.withLock { state in
            state.accepted += 1
            return state.accepted
        }
        while let request = try? peer.message() {
            let answer = answer(to: Arrival(request.head, request.body), on: number)
            guard let text = answer.text, (try? peer.send(text)) != nil, !answer.closes else { return }
        }
    }

    private func answer(to request: Arrival, on number: Int) -> Answer {
        if request.path == "/first" {
            switch request.message {
            case "-": return Answer("401 \(scheme)", to: request)
            case "type-1": return Answer("401 message", to: request)
            default: return Answer("200 close", to: request)
            }
        }
        return state.withLock { state in
            if let index = state.connections.firstIndex(where: { $0.number == number }) {
                state.connections[index].requests.append(request.note)
            } else {
                state.connections.append((number, [request.note]))
            }
            if let user = request.user { state.users.insert(user) }
            if request.method != "HEAD", !request.hasOwnField { state.lostFields.append(request.note) }
            guard var next = state.answers[request.message], let first = next.first else {
                return Answer("500 unforeseen", to: request)
            }
            if next.count > 1 { next.removeFirst() }
            state.answers[request.message] = next
            return Answer(first, to: request)
        }
    }
}

/// A request, and the message of authentication in it: `type-1` and `type-3` of NTLM, the name of another scheme, or `-`.
private struct Arrival {
    let method, path: String
    var message = "-"
    /// `DOMAIN\user` of a third message, or the user name of Basic.
    var user: String?
    let hasOwnField: Bool
    private let length: Int?

    init(_ head: String, _ body: String) {
        let lines = head.components(by: "\r\n")
        let words = lines[0].components(by: " ")
        (method, path) = (words[0], words[1])
        hasOwnField = lines.contains("X-Own: yes")
        length = lines.contains { $0.lowercased().hasPrefix("content-length: ") } ? body.utf8.count : nil
        guard let field = lines.first(where: { $0.hasPrefix("Authorization: ") }) else { return }
        let parts = field.components(by: " ")
        message = parts[1].lowercased()
        guard let bytes = Base64.decode(parts[2]) else { return }
        if message == "basic" { user = String(decoding: bytes.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self) }
        guard message == "ntlm", bytes.count > 8 else { return }
        message = "type-\(bytes[8])"
        if bytes[8] == 3 { user = "\(Self.field(at: 28, of: bytes))\\\(Self.field(at: 36, of: bytes))" }
    }

    /// Notation of the tables.
    var note: String {
        let sent = message == "basic" ? " basic:\(user ?? "")" : message == "-" ? "" : " \(message)"
        return "\(method) \(path)\(sent)" + (length.map { " \($0)" } ?? "")
    }

    /// Returns a field of an AUTHENTICATE_MESSAGE (MS-NLMP §2.2.1.3), as ASCII.
    private static func field(at place: Int, of bytes: [UInt8]) -> String {
        guard bytes.count >= place + 8 else { return "" }
        let length = Int(bytes[place]) | Int(bytes[place + 1]) << 8
        let start = Int(bytes[place + 4]) | Int(bytes[place + 5]) << 8
        return String(decoding: bytes.dropFirst(start).prefix(length).filter { $0 != 0 }, as: UTF8.self)
    }
}

/// An answer of the script.
private struct Answer {
    /// Text of the answer; nil if nothing is sent.
    var text: String?
    let closes: Bool

    init(_ written: String, to request: Arrival) {
        let words = written.components(by: " ")
        closes = words.contains("close")
        guard words[0] != "end" else { return }
        var fields = words.dropFirst().compactMap { Self.challenges[$0] }.map { "WWW-Authenticate: \($0)\r\n" }.joined()
        if closes { fields += "Connection: close\r\n" }
        if words[0].hasPrefix("3") { fields += "Location: /elsewhere\r\n" }
        let whole = answer("\(words[0]) As it is written", "a page", fields)
        text = request.method == "HEAD" ? whole.replacing("\r\n\r\na page", with: "\r\n\r\n") : whole
    }

    private static let challenges = [
        "NTLM": "NTLM", "Basic": "Basic realm=\"testrealm\"", "Negotiate": "Negotiate", "proof": "Negotiate cmlnaHQ=",
        "forged": "Negotiate d3Jvbmc=", "message": "NTLM \(Base64.encode(challengeMessage(0)))",
        "overlong": "NTLM \(Base64.encode(challengeMessage(0xFFFF)))",
    ]

    /// Returns a CHALLENGE_MESSAGE (MS-NLMP §2.2.1.2) of the domain DEMO: Unicode, a target, NTLM, a domain, extended
    /// session security, target information; `extra` bytes of that are padding.
    private static func challengeMessage(_ extra: Int) -> [UInt8] {
        let name: [UInt8] = [0x44, 0, 0x45, 0, 0x4D, 0, 0x4F, 0]
        var info: [UInt8] = [2, 0, 8, 0] + name + [1, 0, 8, 0] + name
        if extra > 0 { info = [2, 0, 0xF7, 0xFF] + [UInt8](repeating: 0x41, count: extra - 8) }
        info += [0, 0, 0, 0]
        let (low, high) = (UInt8(truncatingIfNeeded: info.count), UInt8(truncatingIfNeeded: info.count >> 8))
        return Array("NTLMSSP\0".utf8) + [2, 0, 0, 0] + [8, 0, 8, 0, 48, 0, 0, 0] + [0x05, 0x02, 0x89, 0x20]
            + [0x51, 0x60, 0xD0, 0xC8, 0xD7, 1, 2, 3] + [UInt8](repeating: 0, count: 8)
            + [low, high, low, high, 56, 0, 0, 0] + name + info
    }
}

extension String {
    /// Returns the parts between occurrences of `separator`.
    func components(by separator: String) -> [String] { split(separator: separator).map(String.init) }
}
