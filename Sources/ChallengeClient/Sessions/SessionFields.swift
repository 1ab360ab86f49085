// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPTypes
package import HTTPWire
internal import Secrets

/// The fields that the sessions of a route inject, rendered once and used for each request.
package final class SessionFields {
    /// No fields.
    @safe package nonisolated(unsafe) static let none = SessionFields([])

    private let fields: [(name: [UInt8], isAuthorization: Bool, value: Secret)]
    private let kinds: [FieldName]
    private let otherNames: [[UInt8]]

    init(_ fields: [InjectedField]) {
        self.fields = fields.map { (Array($0.name.rawName.utf8), $0.name == .authorization, $0.value) }
        var kinds: [FieldName] = []
        var otherNames: [[UInt8]] = []
        for field in fields {
            let name = Array(field.name.canonicalName.utf8)
            let kind = FieldName(name.span, ByteRange(start: 0, end: name.count))
            if kind == .other { otherNames.append(name) } else { kinds.append(kind) }
        }
        self.kinds = kinds
        self.otherNames = otherNames
    }

    /// Whether a caller's own field of that name gives way to one of these.
    package func override(_ kind: FieldName, named name: Span<UInt8>) -> Bool {
        if kind != .other { return kinds.contains(kind) }
        return otherNames.contains { other in
            other.count == name.count
                && other.indices.allSatisfy { other[$0] == name[$0] | 0x20 || other[$0] == name[$0] }
        }
    }

    /// Appends them to a request; without `Authorization` where the caller's own goes.
    func write(into list: HeaderList, keepingCredentials: Bool = false) throws(CurlError) {
        for field in fields {
            if keepingCredentials, field.isAuthorization { continue }
            try field.value.withBytes { (value) throws(CurlError) in
                try list.append(name: field.name.span, value: value)
            }
        }
    }
}
