// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The limits of one request's held body, in bytes: the beginning in memory, the rest in a file.
///
/// A body longer than both together is streamed, and cannot be sent again after more than that was sent.
package struct ReplayTiers: Sendable, Equatable {
    /// The limit in memory.
    package var memory: Int
    /// The limit in an unnamed file after that (`ReplaySpool`).
    package var disk: Int

    /// Creates tiers; negative numbers count as 0.
    package init(memory: Int, disk: Int = 0) {
        self.memory = max(0, memory)
        self.disk = max(0, disk)
    }

    /// The defaults of the configuration.
    package static let standard = ReplayTiers(memory: 64 * 1024, disk: 16 * 1024 * 1024)

    /// No tiers: nothing is held.
    package static let none = ReplayTiers(memory: 0)

    /// The sum of both; saturates.
    package var total: Int {
        let (sum, overflow) = memory.addingReportingOverflow(disk)
        return overflow ? .max : sum
    }

    /// Returns true if a body of `length` bytes can be held whole.
    package func fits(_ length: UInt64) -> Bool { length <= UInt64(total) }
}

extension ReplayTiers {
    /// The bytes held for libcurl's own second attempt on another connection; no more than the window needs anyway.
    private static let cheap = ReplayBuffer.window

    /// Returns the tiers for a request's body, and true if the body exceeds them.
    ///
    /// If nothing can challenge and no signature needs the body, nothing has to be read again, except by libcurl itself
    /// on a kept connection that turns out to be dead. A body that is known to be too long uses no disk space: it has
    /// to be refused while only its beginning was sent. `isReadFirst`: the body is read whole before any of it is sent.
    func keeping(
        bodyOf request: ExchangeRequest, mayNeedAgain: Bool, isReadFirst: Bool = false, spool: ReplaySpool?
    ) -> (tiers: ReplayTiers, isTooLong: Bool) {
        guard isReadFirst || mayNeedAgain && !request.keepsCredentials else {
            let kept = request.method.isIdempotent ? min(memory, Self.cheap) : 0
            return (ReplayTiers(memory: kept), false)
        }
        guard let spool, spool.limit > 0, disk > 0 else {
            let tiers = ReplayTiers(memory: memory)
            return (tiers, request.length.map { !tiers.fits($0) } ?? false)
        }
        // Unknown length: sent at once and held as received. Nearly all such bodies are short, and a login before them,
        // or a wait for `100 Continue`, would cost each a second because of the few long ones.
        guard let length = request.length else { return (self, false) }
        let tiers = ReplayTiers(memory: memory, disk: min(disk, spool.room))
        guard tiers.fits(length) else { return (ReplayTiers(memory: memory), true) }
        return (self, false)
    }
}

extension ExchangeRequest {
    /// The body's length in bytes, if known in advance.
    var length: UInt64? {
        switch framing {
        case .none: 0
        case .length(let length): length
        case .chunked: nil
        }
    }
}
