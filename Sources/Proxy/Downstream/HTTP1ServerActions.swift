// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

// The actions of `HTTP1ServerMachine`: one small enum for each event.
extension HTTP1ServerMachine {
    /// The time limit of a connection; the driver has the clock and the configured durations.
    enum TimeLimit: Equatable {
        case none
        /// For the first byte of a connection.
        case firstByte
        /// For all of a request head.
        case request
        /// For the next piece of a body.
        case body
        /// For an answer of our own that is being made.
        case answer
        /// From the end of a request until memory is given back, and from then until the connection ends.
        case quiet, idle
        /// For the first request of a caller who connected just before a drain.
        case drain
        /// For what is read over after the last response.
        case lingering
        /// Until it is looked again whether a caller that has ended its side is still there.
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
        /// Take the whole head, forget its bytes, and begin the request.
        case takeHead(length: Int)
        /// Refuse what is no request head.
        case refuseHead(WireError)
        /// Give the service these bytes of the body, then forget `consumed` bytes.
        case takeBody(ByteRange, consumed: Int)
        /// Forget so many bytes and look again.
        case skip(Int)
        /// Forget so many bytes, and wait for more.
        case await(consumed: Int)
        /// Tell the service that the body is complete, with `trailers`; then forget `consumed` bytes.
        case endBody(consumed: Int)
        /// Forget so many bytes and write the answer that is ready.
        case writeAnswer(consumed: Int)
        /// Refuse a body whose framing is broken.
        case refuseBody(WireError)
    }

    enum AnswerAction: Equatable {
        case write
        /// Keep it until `writeAnswer`.
        case writeAfterBody
        /// A response is there already.
        case drop
    }

    enum FinishAction: Equatable {
        case readNext
        /// Write what waits and end the connection.
        case close
    }

    enum InputEndAction: Equatable {
        case nothing
        case close
        /// Break the request off: its body will not be complete.
        case breakOff
        /// Look whether the caller is still there, now and from time to time.
        case lookForCaller
    }

    enum BreakOffAction: Equatable {
        /// The response is whole: the request is over.
        case finish
        /// No response has begun: a reply may say why, else the connection is reset.
        case refuse
        /// Reset the connection, so that the part of a response is not taken for the whole.
        case reset
    }

    enum TimeLimitAction: Equatable {
        case nothing
        /// Read what has come in this turn; then, if the same head is still half read, ask again.
        case readFirst
        /// Reply that the head, or the body, did not come in time (RFC 9110 §15.5.9).
        case refuseHead, refuseBody
        case releaseMemory
        /// Make the answer that was waited for.
        case makeAnswer
        /// Write the answer that is ready.
        case writeAnswer
        case lookForCaller
        case close
    }

    enum WrittenAction: Equatable {
        case nothing
        case close
        /// End our side, and read over what still comes.
        case linger
    }

    enum DrainAction: Equatable {
        case nothing
        case close
    }

    enum DrainEndAction: Equatable {
        case nothing
        /// Reply that the daemon stops.
        case refuse
        case close
        case reset
    }
}
