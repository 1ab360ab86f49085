// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// The actions of `HTTP1ClientMachine`: one small enum for each event.
extension HTTP1ClientMachine {
    enum BeginAction: Equatable {
        /// Connect; the request waits for that.
        case connect
        /// Send the head on the connection that is there.
        case send
        /// Refuse the request: the connection takes none now.
        case refuse
    }

    enum ConnectAction: Equatable {
        /// Send the head.
        case send
        case nothing
    }

    enum SendAction: Equatable {
        case nothing
        /// Ask the owner for so many bytes of the body at most, and send them as they are.
        case piece(upTo: Int)
        /// Ask the owner for so many bytes of the body at most, and send them as a chunk (RFC 9112 §7.1).
        case chunk(upTo: Int)
    }

    enum ReadAction: Equatable {
        /// Receive more.
        case wait
        /// Forget the bytes of an interim head. `endsWait`: the body that has waited for 100 goes now.
        case takeInterim(length: Int, endsWait: Bool)
        /// Forget the bytes of the final head. `isUntilEnd`: only the end of the connection ends the answer; over TLS that
        /// end must be announced.
        case takeHead(length: Int, status: Int, isUntilEnd: Bool)
        /// Forget so many bytes of the body.
        case takeBody(length: Int)
        /// Receive nothing: a window is full, or nothing that follows belongs to this answer.
        case stop
        /// End the request: the answer breaks a rule, or is not wanted. The transfer has noted the reason.
        case refuse
    }

    enum InputEndAction: Equatable {
        /// End the request; whether the answer is whole is known to the transfer.
        case finish
        /// End the request, whose answer broke off within a head.
        case failWithinHead
        /// End the request, on which no byte of an answer has come.
        case failUnheard
    }

    enum SettleAction: Equatable {
        case goOn
        /// End the request: it and its answer are whole, or the rest of it is of no interest.
        case finish
        /// Leave the connection to the other protocol.
        case switchProtocol
    }

    enum EndAction: Equatable {
        /// The connection stays for another request.
        case keep
        case close
    }

    enum ReadyAction: Equatable {
        /// Send and receive.
        case advance
        /// Close the connection, on which something has come that answers no request (RFC 9112 §9.2), or its end.
        case close
        case nothing
    }
}
