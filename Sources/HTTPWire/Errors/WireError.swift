// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why a message is refused: the rule that it breaks, and the status that says so.
///
/// Nothing in it comes from the peer, so it may be logged and told.
public struct WireError: Error, Hashable, Sendable {
    /// The rule that was broken.
    public let code: WireErrorCode
    /// The status for the caller: that of the rule, or 502 where the upstream broke it.
    public let status: Int

    /// A refusal of what a caller sent.
    public init(_ code: WireErrorCode) {
        self.code = code
        self.status = code.status
    }

    /// A refusal of what the upstream sent: 502 (RFC 9110 section 15.6.3).
    public init(upstream code: WireErrorCode) {
        self.code = code
        self.status = 502
    }

    /// A sentence for people that names the rule and its section.
    public var detail: String { code.detail }
}

extension WireError: CustomStringConvertible {
    /// Status, code word and rule in one line.
    public var description: String { "\(status) \(code.rawValue): \(code.detail)" }
}
