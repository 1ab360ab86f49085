// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What came is no reply that we take; nothing that follows can be understood.
package enum ReplyError: Error, Sendable, Equatable {
    /// It follows no rule of the protocol.
    case malformed
    /// It is longer than the reader's limits allow.
    case tooLong
    /// It has more elements than the reader's limits allow.
    case tooManyElements
    /// Lists within lists, more than seven deep.
    case tooDeep
    /// There is no memory for it.
    case outOfMemory
}

extension ReplyError: CustomStringConvertible {
    /// In words, without a full stop.
    package var description: String {
        switch self {
        case .malformed: "its answer follows no rule of the protocol"
        case .tooLong: "its answer is too long"
        case .tooManyElements: "its answer has too many elements"
        case .tooDeep: "its answer has lists within lists"
        case .outOfMemory: "there is no memory for its answer"
        }
    }
}
