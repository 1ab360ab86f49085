// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets

/// Where a token goes: the field that carries it, and the word before it (RFC 6750 §2.1 by default).
public struct TokenPlacement: Sendable, Equatable {
    /// The field of each request.
    public let field: HTTPField.Name
    /// The word before the token, a space between; empty: none.
    public let prefix: String

    /// A place; the default is `Authorization: Bearer TOKEN`.
    public init(field: HTTPField.Name = .authorization, prefix: String = "Bearer") {
        self.field = field
        self.prefix = prefix
    }

    /// The longest token that is taken, in bytes: what a server still reads as one field.
    static let longest = 32 * 1024

    /// Whether a field can carry `token`: visible ASCII, and not a sign between (RFC 6749 appendix A.12, less the space).
    static func canCarry(_ token: some Collection<UInt8>) -> Bool {
        (1...longest).contains(token.count) && token.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// The field with `token` in it.
    func field(carrying token: Secret) -> InjectedField {
        InjectedField(
            name: field, value: prefix.isEmpty ? token : Secret(Array("\(prefix) ".utf8) + token.revealBytes()))
    }
}
