// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import HTTPWire

/// An upstream's response head as values, for what looks at more than its bytes.
struct ScannedHead {
    let status: Int
    let fields: HTTPFields

    /// `nil` for a head that follows no grammar.
    init?(_ bytes: Span<UInt8>) {
        var scanner = ResponseHeadScanner()
        guard case .some = try? scanner.scan(bytes) else { return nil }
        var fields = HTTPFields()
        for line in scanner.head.fields {
            guard let name = HTTPField.Name(bytes.text(line.name)) else { continue }
            fields.append(HTTPField(name: name, value: bytes.text(line.value)))
        }
        status = scanner.head.status
        self.fields = fields
    }
}
