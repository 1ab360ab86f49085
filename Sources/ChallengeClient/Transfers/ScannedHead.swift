// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import HTTPWire

/// An upstream's response head as values, for what looks at more than its bytes.
struct ScannedHead {
    let status: Int
    let fields: HTTPFields

    /// The values of `head`, whose ranges mean `bytes`.
    init(_ head: ResponseHead, in bytes: Span<UInt8>) {
        var fields = HTTPFields()
        for line in head.fields {
            guard let name = HTTPField.Name(bytes.text(line.name)) else { continue }
            fields.append(HTTPField(name: name, value: bytes.text(line.value)))
        }
        status = head.status
        self.fields = fields
    }
}
