// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

/// The lines to one upstream that rest between two requests, on one worker; and the memory that all of them read into.
final class ExpressRest {
    /// libcurl keeps a connection no longer either (`CURLOPT_MAXAGE_CONN`): what stands in between may have forgotten it.
    private static let longest = LoopDelay(.seconds(118))
    /// For so long after a wait the loop knows what has come on the lines that rest.
    private static let recent = LoopDelay(.milliseconds(2))

    private let limit: Int
    private var isClosed = false
    /// The one that rested last is the last: it is taken first, and those that are not needed grow old.
    private var transfers: [Transfer] = []
    /// Lent to the one line that reads, so that those that wait hold none.
    private var memory = ByteQueue()

    /// Room for `limit` lines.
    init(limit: Int) { self.limit = limit }

    /// A transfer whose line can take `request` at once.
    func take(for request: ExchangeRequest, on loop: EventLoop) -> Transfer? {
        let now = loop.now
        // The loop tells of whatever comes on a line that rests; what has come since its last wait shows only in a look at the socket.
        // A request that may go again (RFC 9110 §9.2.2) does without where that was a moment ago: it is sent once more if its
        // connection had ended.
        let mayGoAgain =
            request.method.isIdempotent && !request.hasBody && loop.readNow() < now + Self.recent
        while let transfer = transfers.popLast() {
            if let line = transfer.line, mayGoAgain || line.isFresh, now < line.restingSince + Self.longest {
                return transfer
            }
            transfer.line?.close()
        }
        return nil
    }

    /// Has the line of `transfer` rest here, or closes it.
    func put(_ transfer: Transfer, now: LoopInstant) {
        if !isClosed, transfers.count < limit, transfer.line?.goToRest(now: now) == true {
            transfers.append(transfer)
        } else {
            transfer.line?.close()
        }
        if let oldest = transfers.first, let line = oldest.line, now >= line.restingSince + Self.longest {
            transfers.removeFirst()
            line.close()
        }
    }

    /// The line of `transfer` is closed.
    func remove(_ transfer: Transfer) { transfers.removeAll { $0 === transfer } }

    /// Closes all, and whatever comes later.
    func close() {
        isClosed = true
        for transfer in transfers { transfer.line?.close() }
        transfers = []
    }

    /// Gives `input` the memory that is shared, or takes it back, where it holds nothing that is to be kept.
    func exchangeMemory(with input: inout ByteQueue) {
        if input.isEmpty { swap(&input, &memory) }
    }
}
