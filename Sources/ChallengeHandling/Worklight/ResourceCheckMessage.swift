// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// What a server says about security checks where no MobileFirst 8.0 client stands between: a resource that names its checks
/// itself, or Worklight 6.x and MobileFirst 7.x, whose checks are *realms*.
public struct ResourceCheckMessage: Sendable {
    /// How it is spoken.
    public enum Dialect: Sendable, Equatable {
        /// `WWW-Authenticate: WL-Composite-Challenge`, JSON in a comment, answers in `Authorization` (Worklight 6.x, MobileFirst 7.x).
        case composite
        /// `{"challenges": …}` from the resource; answers go to an address of their own.
        case resource
    }

    /// How it is spoken.
    public var dialect: Dialect
    /// Checks that demand answers.
    public var challenges: [String: JSONValue]
    /// Checks that have passed.
    public var successes: [String: JSONValue]
    /// Checks that have failed for good.
    public var failures: [String: JSONValue]

    /// Reads an answer; `nil` where it says nothing of security checks. The members of both dialects are taken, as are both
    /// places where a success may stand.
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

    /// Whether the fields of a response announce a composite challenge.
    static func isComposite(_ fields: HTTPFields) -> Bool {
        fields[values: .wwwAuthenticate].contains { value in
            ((try? AuthenticationChallenge.parse([value])) ?? []).contains { $0.isScheme("WL-Composite-Challenge") }
        }
    }

    /// Without the comment that keeps scripts of other sites from reading it (`/*-secure-` … `*/`).
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
