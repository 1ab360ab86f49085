// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire

/// A response head that may be a challenge, in the form that examiners take.
struct ExaminedAnswer {
    let status: Int
    let fields: HTTPFields

    /// `nil` for the statuses that none of today's challenges has, which costs the hot path three comparisons.
    init?(_ head: ResponseHead, in bytes: borrowing ByteQueue) {
        status = head.status
        guard status == 401 || status == 403 || status == 409 else { return nil }
        fields = bytes.withSpan { ScannedHead(head, in: $0).fields }
    }
}
