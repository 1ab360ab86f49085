// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets

/// A request as a server receives it.
struct ServerRequest {
    var method: String
    /// Path and query.
    var target: String
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var trailers: [(name: String, value: String)] = []
    /// The step in which the daemon began to send it.
    var sentAt = 0
    /// The host name of a login's request.
    var host = ""
    /// True for a request of a login.
    var isSide = false
    /// True for a look at the page of a caller's safe request, at its address and with its query.
    var isLook = false
    /// The origin of a login's request.
    var origin: String?
    /// True if the body has not come, or not all of it.
    var isIncomplete = false

    /// Creates a request.
    init(method: String, target: String) {
        self.method = method
        self.target = target
    }

    /// Creates the request of a login.
    init(_ request: SideRequest, sentAt step: Int) {
        self.init(method: request.method.rawValue, target: request.url.target)
        sentAt = step
        host = request.url.origin.host
        isSide = true
        isLook = request.isLook
        origin = "\(request.url.origin)"
        for field in request.fields { fields.append((field.name.rawName, field.value)) }
        body = request.body?.revealBytes() ?? []
    }

    /// Returns the text with its percent-encoding decoded.
    static func percentDecoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The number of the order that it carries.
    var order: Int? { value("x-order").flatMap { Int($0) } }

    /// The path without the query.
    var path: String { String(target.prefix { $0 != "?" }) }

    /// Returns the value of a field, or `nil`; several lines are joined.
    func value(_ name: String) -> String? {
        let all = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return all.isEmpty ? nil : all.joined(separator: ", ")
    }

    /// True if it has a credential or a session of the proxy's.
    var holdsCredential: Bool {
        fields.contains { $0.name.lowercased() == "authorization" || SecretWatch.holdsSecret(Array($0.value.utf8)) }
    }

    /// True if the body waits for 100.
    var expectsContinue: Bool { value("expect")?.lowercased() == "100-continue" }

    /// Returns the value of a cookie, or `nil`.
    func cookie(_ name: String) -> String? {
        for part in (value("cookie") ?? "").split(separator: ";") {
            let pair = part.drop { $0 == " " }
            if pair.hasPrefix("\(name)=") { return String(pair.dropFirst(name.utf8.count + 1)) }
        }
        return nil
    }

    /// Returns the fields of a submitted form.
    var form: [String: String] { Self.pairs(of: String(decoding: body, as: UTF8.self)) }

    /// Returns the names and values of a form or a query.
    static func pairs(of text: String) -> [String: String] {
        var found: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            found[String(parts[0])] = parts.count > 1 ? percentDecoded(String(parts[1])) : ""
        }
        return found
    }
}

/// The answer of a server.
struct ServerAnswer {
    /// The framing of the body.
    enum Framing: CaseIterable {
        case length, chunked, untilClose
    }

    var status: Int
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var framing = Framing.length
    /// True if the connection ends after it.
    var closes = false
    /// True if the body ends before it is whole, and the connection with it.
    var isTruncated = false
    /// The attempt that it judges.
    var attempt: Attempt?
    /// The interruption of its body.
    var pause: SlowAnswer.Pause?

    /// Creates an answer.
    init(_ status: Int, _ fields: [(name: String, value: String)] = [], body: String = "") {
        self.status = status
        self.fields = fields
        self.body = Array(body.utf8)
    }

    /// Returns the answer as the judgement of an attempt.
    func judging(_ attempt: Attempt?) -> ServerAnswer {
        var answer = self
        answer.attempt = attempt
        return answer
    }

    /// Returns the answer on a connection.
    func bytes(for request: ServerRequest) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(status == 200 ? "OK" : "Other")\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        if status == 101 { return Array((text + "\r\n").utf8) }
        let hasBody = request.method != "HEAD" && status != 204 && status != 304
        if closes { text += "Connection: close\r\n" }
        switch framing {
        case .length:
            if status != 204, status != 304 { text += "Content-Length: \(body.count)\r\n\r\n" } else { text += "\r\n" }
            let sent = isTruncated ? body.count / 2 : body.count
            return Array(text.utf8) + (hasBody ? Array(body.prefix(sent)) : [])
        case .untilClose:
            return Array((text + "\r\n").utf8) + (hasBody ? body : [])
        case .chunked:
            text += "Transfer-Encoding: chunked\r\n\r\n"
            guard hasBody else { return Array(text.utf8) }
            var bytes = Array(text.utf8)
            var rest = body[...]
            while !rest.isEmpty {
                let piece = rest.prefix(1 + rest.count / 2)
                rest = rest.dropFirst(piece.count)
                bytes += Array("\(String(piece.count, radix: 16))\r\n".utf8) + Array(piece) + [13, 10]
                if isTruncated { return bytes }
            }
            return bytes + Array("0\r\n\r\n".utf8)
        }
    }
}
