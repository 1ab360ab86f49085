// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Text of a request whose digest is signed: method, path, query, fields, and the digest of the body.
///
/// Source: "Create a signed AWS API request", AWS Identity and Access Management User Guide.
/// Reused for one request after the other, so that its memory is allocated once.
struct AWSCanonicalRequest {
    /// A field that is signed: places of its name, in lower case, and of its value in `bytes`.
    private struct Field {
        var name: Range<Int>
        var value: Range<Int>
    }

    private var bytes: [UInt8] = []
    /// Fields in order of their names.
    private var fields: [Field] = []
    /// Value of the request's own `x-amz-content-sha256`.
    private(set) var ownDigest: [UInt8]?

    private static let prefix = Array("x-amz-".utf8)
    private static let digestName = Array("x-amz-content-sha256".utf8)
    private static let others = ["content-md5", "content-type", "host"].map { Array($0.utf8) }

    /// Collects the fields that are signed, replacing those of the previous request.
    ///
    /// They are `Host`, `Content-Type`, `Content-MD5`, and all of `x-amz-*`: other fields may change on the way.
    mutating func read(_ request: SigningRequest) {
        bytes.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
        ownDigest = nil
        guard let sent = request.fields else {
            add("host".utf8.span, request.origin.authority.utf8.span)
            return
        }
        sent.forEach { name, value in
            guard Self.isSigned(name) else { return }
            let field = add(name, value)
            if name.isEqual(toLowercase: Self.digestName) { ownDigest = Array(bytes[field.value]) }
        }
    }

    /// Adds a field: its name in lower case, its value without blanks at its ends and with runs of blanks as one.
    @discardableResult
    private mutating func add(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Field {
        let start = bytes.count
        for index in name.indices { bytes.append(name[index].lowercased) }
        let middle = bytes.count
        for index in value.indices {
            let byte = value[index]
            if byte != 0x20, byte != 0x09 {
                bytes.append(byte)
            } else if bytes.count > middle, bytes.last != 0x20 {
                bytes.append(0x20)
            }
        }
        if bytes.count > middle, bytes.last == 0x20 { bytes.removeLast() }
        let field = Field(name: start..<middle, value: middle..<bytes.count)
        // After fields of the same name: their values are joined in the order of sending.
        var index = fields.count
        while index > 0, precedes(field.name, fields[index - 1].name) { index -= 1 }
        fields.insert(field, at: index)
        return field
    }

    /// Overwrites the values, which may include a token, and keeps the memory.
    mutating func wipe() {
        for index in bytes.indices { bytes[index] = 0 }
        fields.removeAll(keepingCapacity: true)
    }

    /// Adds a field of the signature itself.
    mutating func add(_ name: HTTPField.Name, _ value: Span<UInt8>) { add(name.canonicalName.utf8.span, value) }

    /// Appends the names of the signed fields: `host;x-amz-date`.
    func writeNames(to text: inout SecretBuilder) {
        for index in fields.indices where !isRepeated(index) {
            if index > 0 { text.append(UInt8(ascii: ";")) }
            text.append(bytes.span.extracting(fields[index].name))
        }
    }

    /// Appends the text to `text`.
    func write(_ request: SigningRequest, _ service: AWSService, body: [UInt8], to text: inout SecretBuilder) {
        text.append(request.method)
        text.append(.lineFeed)
        AWSCanonicalTarget.write(request.target.utf8.span, for: service, to: &text)
        for index in fields.indices {
            if isRepeated(index) {
                text.append(UInt8(ascii: ","))
            } else {
                if index > 0 { text.append(.lineFeed) }
                text.append(bytes.span.extracting(fields[index].name))
                text.append(UInt8(ascii: ":"))
            }
            text.append(bytes.span.extracting(fields[index].value))
        }
        if !fields.isEmpty { text.append(.lineFeed) }
        text.append(.lineFeed)
        writeNames(to: &text)
        text.append(.lineFeed)
        text.append(body.span)
    }

    /// Returns whether the field has the name of the one before.
    private func isRepeated(_ index: Int) -> Bool {
        index > 0 && bytes[fields[index].name] == bytes[fields[index - 1].name]
    }

    /// Returns whether the bytes at `one` sort before those at `other`.
    private func precedes(_ one: Range<Int>, _ other: Range<Int>) -> Bool {
        for (left, right) in zip(one, other) where bytes[left] != bytes[right] { return bytes[left] < bytes[right] }
        return one.count < other.count
    }

    private static func isSigned(_ name: Span<UInt8>) -> Bool {
        if name.count > prefix.count, name.extracting(first: prefix.count).isEqual(toLowercase: prefix) { return true }
        return others.contains { name.isEqual(toLowercase: $0) }
    }
}

extension UInt8 {
    fileprivate static let lineFeed = UInt8(ascii: "\n")
}
