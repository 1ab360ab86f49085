// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension Span<UInt8> {
    /// Copy of the bytes.
    package var array: [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for index in indices { copy.append(self[index]) }
        return copy
    }

    /// Returns true if the bytes in lower case are `text`, which has no capitals.
    package func isEqual(toLowercase text: [UInt8]) -> Bool {
        guard count == text.count else { return false }
        for index in indices where self[index].lowercased != text[index] { return false }
        return true
    }
}
