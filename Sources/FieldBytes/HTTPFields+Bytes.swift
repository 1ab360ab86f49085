// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes

/// Values that go back to the server as they came: they are opaque bytes, which need not be UTF-8 (RFC 9110 §5.5).
extension HTTPFields {
    /// Returns the values of the fields of that name, in order.
    package func bytes(of name: HTTPField.Name) -> [[UInt8]] {
        self[fields: name].map { field in unsafe field.withUnsafeBytesOfValue { unsafe Array($0) } }
    }

    /// Replaces the fields of that name by one with these bytes; by none for `nil`.
    package mutating func set(_ name: HTTPField.Name, to bytes: [UInt8]?) {
        self[fields: name] = bytes.map { [HTTPField(name: name, value: $0)] } ?? []
    }
}
