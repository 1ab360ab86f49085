// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// Changes to one exchange because of its sessions' values: in the target, the head and the body.
///
/// All other users of the request, such as routes, latches and logs, see the caller's target.
struct InjectedRequest: ~Copyable {
    /// Path and query with the values; empty if there are no values.
    private(set) var target = ByteQueue()
    /// Cleaner of the answer's body, if this is a page to be cleaned.
    private var page: BodyCleaner?
    /// The number of bytes in the transfer that are clean, but were left there by the caller.
    private var clean = 0

    /// True if the answer's body is cleaned.
    var cleansPage: Bool { page != nil }
    /// True if bytes of the answer are held back, because they may be the beginning of a value.
    var isHoldingBody: Bool { page?.isHolding == true }

    /// Writes the target that is sent for the caller's.
    mutating func setTarget(_ caller: borrowing ByteQueue, by values: RequestInjections, base: Int) {
        erase()
        caller.withSpan { caller in
            values.writeTarget(caller, base: base) { target.append($0) }
        }
    }

    /// Removes the values at the end of the exchange.
    mutating func erase() {
        if target.capacity > 0 { target.erase() }
        page = nil
        clean = 0
    }

    // MARK: Answers

    /// Begins the body of an answer; `nil` if the answer is not a page to be cleaned.
    mutating func beginPage(_ cleaner: BodyCleaner?) {
        page = cleaner
        clean = 0
    }

    /// Cleans the received part of the answer's body. `isEnd`: no more follows.
    mutating func cleanBody(of transfer: Transfer, isEnd: Bool) {
        guard page != nil, isEnd || transfer.body.count > clean else { return }
        let bytes = transfer.body.copy()
        let cleaned = page?.clean(Array(bytes.dropFirst(clean)), isEnd: isEnd) ?? []
        transfer.body.removeAll()
        transfer.body.append(bytes.prefix(clean))
        transfer.body.append(cleaned)
        clean = transfer.body.count
    }

    /// Records the part of the body that the caller has not taken.
    mutating func recordDelivery(of transfer: Transfer) { clean = transfer.body.count }
}
