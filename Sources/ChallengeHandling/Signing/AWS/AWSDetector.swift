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
