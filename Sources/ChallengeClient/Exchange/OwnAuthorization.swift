// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The effect of a caller's own `Authorization` upstream.
package enum OwnAuthorization: Sendable {
    /// The request has none.
    case none
    /// It authenticates its request only.
    case request
    /// It may authenticate the connection, and with that all later requests there (RFC 4559, MS-NTHT).
    case connection

    /// The schemes that authenticate connections, as prefixes in lower case.
    private static let schemes = ["nego", "ntlm", "kerberos"].map { Array($0.utf8) }

    /// Reads the value of the field.
    package init(_ value: Span<UInt8>) {
        self = Self.schemes.contains { Self.begins(value, with: $0) } ? .connection : .request
    }

    private static func begins(_ value: Span<UInt8>, with scheme: [UInt8]) -> Bool {
        guard value.count >= scheme.count else { return false }
        for index in scheme.indices where value[index] | 0x20 != scheme[index] { return false }
        return true
    }
}
