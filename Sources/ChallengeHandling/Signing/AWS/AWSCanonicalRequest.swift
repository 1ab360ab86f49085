// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Text of a request whose digest is signed: method, path, query, fields, and the digest of the body.
///
/// Source: "Create a signed AWS API request", AWS Identity and Access Management User Guide.
struct AWSCanonicalRequest {
    /// A field that is signed, with its name in lower case.
    struct Field {
        var name: [UInt8]
        var value: [UInt8]
    }

    /// Fields in order of their names.
    private(set) var fields: [Field] = []
    /// Value of the request's own `x-amz-content-sha256`.
    private(set) var ownDigest: [UInt8]?

    private static let prefix = Array("x-amz-".utf8)
    private static let digestName = Array("x-amz-content-sha256".utf8)
    private static let others = ["content-md5", "content-type", "host"].map { Array($0.utf8) }

    /// Collects the fields that are signed: `Host`, `Content-Type`, `Content-MD5`, and all of `x-amz-*`.
    ///
    /// Other fields may change on the way, and are not signed.
    init(_ request: SigningRequest) {
        guard let sent = request.fields else {
            add("host", Array(request.origin.authority.utf8))
            return
        }
        sent.forEach { name, value in
            guard let name = Self.signedName(name) else { return }
            let value = Self.collapsed(value)
            if name == Self.digestName { ownDigest = value }
            add(name, value)
        }
    }

    /// Adds a field of the signature itself.
    mutating func add(_ name: String, _ value: [UInt8]) { add(Array(name.utf8), value) }

    private mutating func add(_ name: [UInt8], _ value: [UInt8]) {
        // After fields of the same name: their values are joined in the order of sending.
        let index = fields.firstIndex { name.lexicographicallyPrecedes($0.name) } ?? fields.endIndex
        fields.insert(Field(name: name, value: value), at: index)
    }

    /// Names of the signed fields: `host;x-amz-date`.
    var signedNames: [UInt8] {
        var names: [UInt8] = []
        for (index, field) in fields.enumerated() where index == 0 || fields[index - 1].name != field.name {
            if !names.isEmpty { names.append(UInt8(ascii: ";")) }
            names += field.name
        }
        return names
    }

    /// Appends the text to `text`.
    func write(
        _ request: SigningRequest, _ service: AWSService, signedNames: [UInt8], body: [UInt8],
        to text: inout SecretBuilder
    ) {
        text.append(request.method)
        text.append(.lineFeed)
        let target = Array(request.target.utf8)
        let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        text.append(AWSCanonicalPath.path(target[..<mark], for: service))
        text.append(.lineFeed)
        text.append(AWSCanonicalPath.query(target[mark...].dropFirst()))
        text.append(.lineFeed)
        for (index, field) in fields.enumerated() {
            if index > 0, fields[index - 1].name == field.name {
                text.append(UInt8(ascii: ","))
            } else {
                if index > 0 { text.append(.lineFeed) }
                text.append(field.name)
                text.append(UInt8(ascii: ":"))
            }
            text.append(field.value)
        }
        if !fields.isEmpty { text.append(.lineFeed) }
        text.append(.lineFeed)
        text.append(signedNames)
        text.append(.lineFeed)
        text.append(body)
    }

    /// Returns the name in lower case if the field is signed.
    private static func signedName(_ name: Span<UInt8>) -> [UInt8]? {
        guard name.count >= 4 else { return nil }
        var lower: [UInt8] = []
        lower.reserveCapacity(name.count)
        for index in name.indices {
            let byte = name[index]
            lower.append(byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte)
        }
        return lower.starts(with: prefix) || others.contains(lower) ? lower : nil
    }

    /// Returns a value without blanks at its ends, and with runs of blanks as one.
    private static func collapsed(_ value: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(value.count)
        for index in value.indices {
            let byte = value[index]
            guard byte == 0x20 || byte == 0x09 else {
                bytes.append(byte)
                continue
            }
            if let last = bytes.last, last != 0x20 { bytes.append(0x20) }
        }
        if bytes.last == 0x20 { bytes.removeLast() }
        return bytes
    }
}

extension UInt8 {
    fileprivate static let lineFeed = UInt8(ascii: "\n")
}
