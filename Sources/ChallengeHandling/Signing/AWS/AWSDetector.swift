// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Detector of responses that a new signature or a new key can change: a wrong clock, and a temporary key that has expired.
///
/// A wrong key is not handled: no login can fix it, so the response is forwarded.
struct AWSDetector: ChallengeDetector {
    /// `signature`.
    var kind: String { "signature" }

    /// Responses with the statuses of a refused signature.
    var filter: ResponseFilter {
        ResponseFilter([
            ResponseMatcher(statuses: [400, 403], bodyContains: ["Expired", "Time"], contentTypes: Self.types)
        ])
    }

    private static let types = [
        "application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1", "application/xml", "text/xml",
    ]

    /// Returns `stale` if the time or the key of the signature is refused. The login ends it if nothing new can be signed.
    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard hasSession, response.status == 400 || response.status == 403 else { return .pass }
        guard let body = response.body else { return .needsBody }
        let fault = AWSFault(body)
        guard fault.isOfTime || fault.isOfExpiry, !AWSSigner.isSigned(response.url.target) else { return .pass }
        return .stale
    }

    /// Returns the server's code of the refusal.
    func sign(of response: ExaminedResponse) -> String? {
        response.body.flatMap { AWSFault($0).code }.map { "the server's code \($0)" }
    }
}

/// Error that a service reports, in XML or JSON.
struct AWSFault {
    /// The code, such as `RequestTimeTooSkewed`.
    let code: String?
    private let message: String

    private static let times: Set<String> = ["RequestExpired", "RequestTimeTooSkewed"]
    private static let expired: Set<String> = ["ExpiredToken", "ExpiredTokenException"]

    /// Reads the beginning of a response's body.
    init(_ body: [UInt8]) {
        if let json = JSONValue(parsing: body) {
            let type = (json["__type"] ?? json["code"] ?? json["Code"])?.stringValue ?? ""
            code = Self.word(type.split(separator: "#").last.map(String.init))
            message = (json["message"] ?? json["Message"])?.stringValue ?? ""
        } else {
            code = Self.word(AWSDocument.text(of: "Code", in: body))
            message = AWSDocument.text(of: "Message", in: body) ?? ""
        }
    }

    /// True if the signature's time is refused.
    var isOfTime: Bool {
        code.map(Self.times.contains) == true || message.contains("Signature expired")
            || message.contains("Signature not yet current")
    }

    /// True if the signature names another service or region than the server's, which says nothing about the key.
    var isOfScope: Bool { message.contains("scoped to") }

    /// True if the temporary key has expired.
    var isOfExpiry: Bool { code.map(Self.expired.contains) == true }

    private static func word(_ text: String?) -> String? {
        guard let text, (1...64).contains(text.utf8.count), text.utf8.allSatisfy({ $0.isAlphanumeric || $0 == 0x2E })
        else { return nil }
        return text
    }
}

/// Texts of the small XML documents with which services answer.
///
/// This is not a parser of XML: it finds the first element of a name with only text as content. These answers need no
/// more, and all other content is ignored.
enum AWSDocument {
    /// Maximum number of bytes of a document that is searched.
    static let limit = 64 * 1024

    /// Returns the text of the first element of that name; nil if missing, or if it contains other elements.
    static func text(of name: String, in document: [UInt8]) -> String? {
        let document = document.prefix(limit)
        let opening = Array("<\(name)>".utf8)
        let closing = Array("</\(name)>".utf8)
        guard let start = document.firstRange(of: opening)?.upperBound,
            let end = document[start...].firstIndex(of: UInt8(ascii: "<")), document[end...].starts(with: closing)
        else { return nil }
        return String(validating: document[start..<end], as: UTF8.self).flatMap(decoded)
    }

    /// Returns `text` with the five named entities of XML decoded (XML 1.0 §4.6); nil if there are others.
    private static func decoded(_ text: String) -> String? {
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var result = ""
        var rest = Substring(text)
        while let mark = rest.firstIndex(of: "&") {
            result += rest[..<mark]
            rest = rest[mark...]
            guard let entity = entities.first(where: { rest.hasPrefix($0.name) }) else { return nil }
            result += entity.text
            rest = rest.dropFirst(entity.name.count)
        }
        return result + rest
    }

    private static let entities = [
        (name: "&amp;", text: "&"), (name: "&lt;", text: "<"), (name: "&gt;", text: ">"), (name: "&quot;", text: "\""),
        (name: "&apos;", text: "'"),
    ]
}
