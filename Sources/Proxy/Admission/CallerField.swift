// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPWire

/// Field of requests with the caller's token. Never forwarded.
package struct CallerField: Sendable {
    private let name: [UInt8]
    private let kind: FieldName

    /// Makes the field of that name.
    package init(_ name: String) {
        let bytes = Array(name.utf8)
        self.name = bytes
        kind = FieldName(foldingUnderscoresIn: bytes.span)
    }

    /// True if the token follows the scheme `Bearer` (RFC 6750 §2.1).
    package var isBearer: Bool { kind == .authorization }

    /// The value of `WWW-Authenticate`, which a 401 must have (RFC 9110 §15.5.2).
    package var challenge: String {
        isBearer ? "Bearer" : "Countersign field=\"\(String(decoding: name, as: UTF8.self))\""
    }

    /// Returns true if `line` is the field, or has a name that a CGI program cannot distinguish from it (RFC 3875
    /// §4.1.18).
    func matches(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        guard line.kind == kind || line.kind == .other, line.name.end <= bytes.count else { return false }
        return FieldName.areEqualToCGI(name.span, bytes.extracting(line.name.bounds))
    }

    /// Returns the range of the token; `nil` if the field is missing or repeated.
    func token(of head: RequestHead, in bytes: Span<UInt8>) -> ByteRange? {
        var found: ByteRange?
        for index in head.fields.indices where matches(head.fields[index], in: bytes) {
            guard found == nil, isSpelled(in: bytes, head.fields[index].name) else { return nil }
            found = head.fields[index].value
        }
        guard let value = found, isBearer else { return found }
        // `Bearer`, and one space or more (RFC 9110 §11.4).
        let scheme = ByteRange(start: value.start, end: min(value.start + Self.scheme, value.end))
        var start = scheme.end
        guard bytes.matches(scheme, ignoringCase: "bearer"), start < value.end, bytes[start] == .space else {
            return nil
        }
        while start < value.end, bytes[start] == .space { start += 1 }
        return ByteRange(start: start, end: value.end)
    }

    /// The length of `Bearer`.
    private static let scheme = 6

    /// Returns true if the name is the configured one, not merely one that CGI programs cannot distinguish from it.
    private func isSpelled(in bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        for (offset, index) in range.bounds.enumerated() where bytes[index].lowercased != name[offset].lowercased {
            return false
        }
        return true
    }
}
