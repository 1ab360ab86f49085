// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

// The actions of `HTTP1ServerMachine`: one small enum for each event.
extension HTTP1ServerMachine {
    /// The time limit of a connection. The driver has the clock and the configured durations.
    enum TimeLimit: Equatable {
        case none
        /// For the first byte of a connection.
        case firstByte
        /// For the complete request head.
        case request
        /// For the next piece of a body.
        case body
        /// For a local answer that is being made.
        case answer
        /// Until memory is released after a request, and from then until the connection ends.
        case quiet, idle
        /// For the first request of a caller who connected just before a drain.
        case drain
        /// For input that is discarded after the last response.
        case lingering
        /// Until the next check whether a caller that has ended its side still exists.
        case presence
    }

    /// The state of the connection's buffers at an event.
    struct Waiting {
        var isInputEmpty: Bool
        var isOutputEmpty: Bool
        var isOutputFull = false
    }

    enum ReadAction: Equatable {
        /// Nothing can be read now.
        case wait
        /// Take the whole head, consume its bytes, and begin the request.
        case takeHead(length: Int)
        /// Refuse bytes that are not a request head.
        case refuseHead(WireError)
        /// Pass these bytes of the body to the service, then consume `consumed` bytes.
        case takeBody(ByteRange, consumed: Int)
        /// Consume that many bytes and read again.
        case skip(Int)
        /// Consume that many bytes and wait for more.
        case await(consumed: Int)
        /// Report to the service that the body is complete, with `trailers`; then consume `consumed` bytes.
        case endBody(consumed: Int)
        /// Consume that many bytes and write the answer that is ready.
        case writeAnswer(consumed: Int)
        /// Refuse a body with invalid framing.
        case refuseBody(WireError)
    }

    enum AnswerAction: Equatable {
        case write
        /// Hold the answer until `writeAnswer`.
        case writeAfterBody
        /// A response exists already.
        case drop
    }

    enum FinishAction: Equatable {
        case readNext
        /// Write the rest of the output and end the connection.
        case close
    }

    enum InputEndAction: Equatable {
        case nothing
        case close
        /// Cancel the request: its body will not be complete.
        case breakOff
        /// Check whether the caller still exists, now and regularly.
        case checkCaller
    }

    enum BreakOffAction: Equatable {
        /// The response is complete, so the request is over.
        case finish
        /// No response has begun: send a reply, or else reset the connection.
        case refuse
        /// Reset the connection, so that the partial response does not look complete.
        case reset
    }

    enum TimeLimitAction: Equatable {
        case nothing
        /// Read the input of this turn; if the same head is still incomplete, ask again.
        case readFirst
        /// Reply that the head, or the body, did not arrive in time (RFC 9110 §15.5.9).
        case refuseHead, refuseBody
        case releaseMemory
        /// Make the answer that was waited for.
        case makeAnswer
        /// Write the answer that is ready.
        case writeAnswer
        case checkCaller
        case close
    }

    enum WrittenAction: Equatable {
        case nothing
        case close
        /// End the sending side, and discard input.
        case linger
    }

    enum DrainAction: Equatable {
        case nothing
        case close
    }

    enum DrainEndAction: Equatable {
        case nothing
        /// Reply that the daemon is stopping.
        case refuse
        case close
        case reset
    }
}
