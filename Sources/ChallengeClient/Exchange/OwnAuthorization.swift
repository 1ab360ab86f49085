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

    /// The beginnings of schemes that authenticate connections.
    private static let schemes: [StaticString] = ["nego", "ntlm", "kerberos"]

    /// Reads the value of the field.
    package init(_ value: Span<UInt8>) {
        self = .request
        for scheme in Self.schemes where value.count >= scheme.utf8CodeUnitCount {
            if value.matches(ByteRange(start: 0, end: scheme.utf8CodeUnitCount), ignoringCase: scheme) {
                self = .connection
            }
        }
    }
}
