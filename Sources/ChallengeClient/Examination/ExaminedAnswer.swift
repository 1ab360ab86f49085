// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire

/// A response head that may be a challenge, in the form that examiners take.
struct ExaminedAnswer {
    let status: Int
    let fields: HTTPFields

    /// `nil` for the statuses that none of today's challenges has, which costs the hot path three comparisons, and for
    /// a head that follows no grammar, which the caller's side refuses.
    init?(_ head: borrowing ByteQueue, of plan: UpstreamPlan) {
        let examined: ExaminedAnswer? = head.withSpan { bytes in
            guard let status = Self.status(of: bytes), status == 401 || status == 403 || status == 409
            else { return nil }
            return ExaminedAnswer(status: status, bytes)
        }
        guard let examined else { return nil }
        self = examined
    }

    /// The three digits after the first space of a status line (RFC 9112 §4).
    private static func status(of bytes: Span<UInt8>) -> Int? {
        guard let space = (0..<min(bytes.count, 12)).first(where: { bytes[$0] == 0x20 }), space + 3 < bytes.count
        else { return nil }
        var status = 0
        for index in space + 1...space + 3 {
            guard bytes[index] >= 0x30, bytes[index] <= 0x39 else { return nil }
            status = status * 10 + Int(bytes[index] - 0x30)
        }
        return status
    }

    private init?(status: Int, _ bytes: Span<UInt8>) {
        guard let head = ScannedHead(bytes) else { return nil }
        self.status = status
        fields = head.fields
    }
}
