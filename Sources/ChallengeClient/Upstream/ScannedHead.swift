// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire

/// An upstream's response head as values, for what looks at more than its bytes.
struct ScannedHead {
    let status: Int
    let fields: HTTPFields

    private static let noFields = HTTPFields()

    /// The values of `head`, whose ranges mean `bytes`; of the fields those of some kinds, if `kinds` are given.
    init(_ head: ResponseHead, in bytes: Span<UInt8>, only kinds: [FieldName]? = nil) {
        // Mostly there are none of those kinds, and so nothing is made for them.
        var fields = Self.noFields
        for line in head.fields {
            if let kinds, !kinds.contains(line.kind) { continue }
            guard let name = HTTPField.Name(bytes.text(line.name)) else { continue }
            fields.append(HTTPField(name: name, value: bytes.text(line.value)))
        }
        status = head.status
        self.fields = fields
    }
}

extension Transfer {
    /// True if its final head is that of a response which `filter` admits.
    func passes(_ filter: ResponseFilter) -> Bool {
        var type: ByteRange?
        for index in answer.fields.indices where answer.fields[index].kind == .contentType {
            guard type == nil else { return filter.admits(status: answer.status) }
            type = answer.fields[index].value
        }
        return head.withSpan { bytes in
            filter.admits(status: answer.status, contentType: bytes.extracting((type ?? .empty).bounds))
        }
    }
}
