// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl
internal import EventLoop
internal import HTTPWire

// The end of a transfer, and what follows for its exchange.
extension Exchange {
    /// Finishes, sends again after a challenge, or tells the caller what went wrong.
    package func transferEnded(_ transfer: Transfer, error: CurlError?) {
        if machine.isLooking { look(at: transfer) }
        guard let client, let stream, self.transfer === transfer, !machine.isHolding else { return }
        if transfer.setback == .expectation {
            request.expectsContinue = false
            client.expectations.note(isHonored: false, at: runtime.loop.now)
            perform(machine.requestUntaken(canReplay: body.canReplay))
        } else if transfer.setback == .unboundConnection {
            // No credential was looked at, so nothing is known of it.
            if trial != nil { judge(.undecided) }
            request.goesUnbound = true
            perform(machine.requestUntaken(canReplay: body.canReplay))
        } else if transfer.setback == .idleTimeout {
            let told = ExchangeError(stream.failure(.gotNothing), upstream: client.plan)
            perform(machine.connectionEnded(told, canResend: body.canReplay))
        } else if error != nil, body.isBroken {
            perform(machine.failed(.bodyLost))
        } else if let fault = transfer.fault {
            perform(machine.failed(ExchangeError(fault, upstream: client.plan)))
        } else if let error {
            let failure = stream.failure(error)
            let canResend =
                switch FailureMeaning(failure).resend {
                case .always: body.canReplay
                case .ifIdempotent: request.method.isIdempotent && body.canReplay
                case .never: false
                }
            let told = ExchangeError(failure, upstream: client.plan)
            perform(machine.connectionEnded(told, canResend: canResend))
        } else {
            deliverTrailers(of: transfer)
            perform(machine.answerComplete())
        }
    }

    /// The request goes without what binds a connection, so that a challenge that comes now is the first.
    func leaveUnbound(at route: RouteSessions) {
        for slot in used.indices where route.slots[slot].login.bindsConnections { used[slot] = 0 }
    }

    /// Trailers go where the answer went.
    func deliverTrailers(of transfer: Transfer) {
        if machine.hasDelivered, transfer.hasTrailers { caller?.exchangeDelivers(trailersOf: transfer) }
    }
}
