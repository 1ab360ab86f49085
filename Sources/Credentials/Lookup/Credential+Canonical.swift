// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

extension Credential {
    /// All its fields in one form, to be made a keyed digest of. Names are folded as environment variables fold them, so the same value
    /// from another source says the same. Each part goes with its length, so no two sets of fields look alike.
    package var canonical: Secret {
        let sorted = fields.map { (name: FieldName.folded($0.key), written: $0.key, value: $0.value) }
            .sorted { ($0.name, $0.written) < ($1.name, $1.written) }
        var fields: [(name: String, value: Secret)] = []
        for field in sorted where !fields.contains(where: { $0.name == field.name && $0.value == field.value }) {
            fields.append((field.name, field.value))
        }
        var parts: [Secret] = []
        for (name, value) in fields {
            var head: [UInt8] = []
            head.append(number: name.utf8.count, bytes: 4)
            head += name.utf8
            head.append(number: value.count, bytes: 4)
            parts.append(Secret(head))
            parts.append(value)
        }
        return .joining(parts)
    }
}
