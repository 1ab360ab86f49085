// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets

/// A server's message about security checks without a MobileFirst 8.0 client. The sender is a resource that names its
/// checks itself, or Worklight 6.x or MobileFirst 7.x, whose checks are *realms*.
public struct ResourceCheckMessage: Sendable {
    /// Dialect of a message.
    public enum Dialect: Sendable, Equatable {
        /// `WWW-Authenticate: WL-Composite-Challenge`, JSON in a comment, answers in `Authorization` (Worklight 6.x, MobileFirst 7.x).
        case composite
        /// `{"challenges": …}` from the resource; answers go to a separate address.
        case resource
    }

    /// The dialect.
    public var dialect: Dialect
    /// Checks that demand answers.
    public var challenges: [String: JSONValue]
    /// Checks that have passed.
    public var successes: [String: JSONValue]
    /// Checks that have failed finally.
    public var failures: [String: JSONValue]

    /// Parses a response; `nil` if it names no security checks. The members of both dialects are read, and both
    /// locations of a success.
    public init?(status: Int, fields: HTTPFields, body: [UInt8]) {
        let json = JSONValue(parsing: Self.unwrapped(body))
        let isComposite = Self.isComposite(fields)
        dialect =
            isComposite || json?["WL-Authentication-Success"] != nil || json?["WL-Authentication-Failure"] != nil
            ? .composite : .resource
        func member(_ names: String...) -> [String: JSONValue] {
            for name in names {
                if let object = json?[name]?.objectValue { return object }
                if let field = HTTPField.Name(name), let value = fields[field],
                    let object = JSONValue(parsing: Array(value.utf8))?.objectValue
                {
                    return object
                }
            }
            return [:]
        }
        challenges = status == 401 || (status == 403 && isComposite) ? member("challenges") : [:]
        successes = member("WL-Authentication-Success", "successes")
        failures = status == 403 || status == 222 ? member("WL-Authentication-Failure", "failures") : [:]
        if challenges.isEmpty, successes.isEmpty, failures.isEmpty { return nil }
    }

    /// Returns whether the fields of a response announce a composite challenge.
    static func isComposite(_ fields: HTTPFields) -> Bool {
        !ChallengeList(in: fields).challenges(of: "WL-Composite-Challenge").isEmpty
    }

    /// Returns the body without its protective comment (`/*-secure-` … `*/`). Servers hide JSON from scripts of other
    /// sites with it.
    static func unwrapped(_ body: [UInt8]) -> [UInt8] {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        var rest = body[...].drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest = rest.dropLast() }
        let (begin, end) = (Array("/*-secure-".utf8), Array("*/".utf8))
        guard rest.starts(with: begin), rest.suffix(2).elementsEqual(end), rest.count >= begin.count + end.count else {
            return body
        }
        return Array(rest.dropFirst(begin.count).dropLast(end.count))
    }
}

/// Detector of security checks that a resource names itself, in either dialect of ``ResourceCheckMessage``.
public struct ResourceCheckDetector: ChallengeDetector {
    private let checks: Set<String>

    /// Creates a detector of the named checks.
    public init(checks: some Sequence<String>) { self.checks = Set(checks) }

    /// The name that `explain` shows.
    public var kind: String { "security check" }

    /// Detects a response whose body names one of the checks. It is a 401, or a 403 with a composite challenge. In the
    /// composite dialect a body that names only client realms counts as well.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        let isComposite = ResourceCheckMessage.isComposite(response.fields)
        guard isComposite ? response.status == 401 || response.status == 403 : response.status == 401 else {
            return .pass
        }
        guard isComposite || Self.isJSON(response.fields) else { return .pass }
        guard let body = response.body else { return .needsBody }
        guard let message = ResourceCheckMessage(status: response.status, fields: response.fields, body: body) else {
            return .pass
        }
        let isOurs = message.challenges.keys.contains { checks.contains($0) }
        let isRoutine = isComposite && message.challenges.keys.allSatisfy { ClientRealms.names.contains($0) }
        return isOurs || isRoutine ? .challenged() : .pass
    }

    private static func isJSON(_ fields: HTTPFields) -> Bool {
        let type = MediaType(fields[.contentType] ?? "").essence
        return type == "application/json" || type.hasSuffix("+json")
    }
}

/// Realms of Worklight 6.x and MobileFirst 7.x about the client, not its user. Every client answers them by itself.
enum ClientRealms {
    /// The realm that requires a value in a field of each request.
    static let antiXSRF = "wl_antiXSRFRealm"
    /// The realm that requires a token and a description of the client.
    static let device = "wl_deviceNoProvisioningRealm"
    static let names: Set<String> = [antiXSRF, device]

    /// Returns the value that `wl_antiXSRFRealm` requires in `WL-Instance-Id`; `nil` if a field cannot carry it.
    static func instance(_ challenge: JSONValue) -> String? {
        guard let value = challenge["WL-Instance-Id"]?.stringValue, !value.isEmpty,
            value.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return value
    }
}

/// Handler of `wl_deviceNoProvisioningRealm`: answers with the token and names of application and device.
struct DeviceRealmHandler: SecurityCheckChallengeHandler {
    let challengeName: String
    /// Application and environment from the server's addresses.
    let application: (name: String, environment: String)

    var securityCheck: String { ClientRealms.device }

    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        guard let token = challenge.value["token"]?.stringValue else {
            return .cancel(reason: "The server asks which device this is, without the token that the answer needs.")
        }
        return .submitChallengeAnswer([
            "ID": [
                "token": .string(token),
                "app": ["id": .string(application.name), "version": "1.0"],
                "device": [
                    "id": .string("countersign"), "os": "Linux", "model": "countersign",
                    "environment": .string(application.environment),
                ],
                "custom": [:],
            ]
        ])
    }
}
