// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
internal import HTTPTypes
internal import HTTPWire

// Called by libcurl.
extension Transfer: TransferDelegate {
    /// Collects heads, interim ones (RFC 9110 §15.2) and the final one. False, which ends the transfer, where one breaks a rule.
    package func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool {
        // After the head: the trailer section of an answer over HTTP/2 (RFC 9113 §8.1).
        if isHeadComplete { return unsafe takeTrailer(headerLine) }
        // A connection of HTTP/1.1 whose server says HTTP/2 would be shared by libcurl among several transfers.
        if head.isEmpty, !mayBeHTTP2 || shape.isHTTP1, unsafe headerLine.count < 6 || headerLine[5] != UInt8(ascii: "1")
        {
            return refuse(.statusLineInvalid)
        }
        guard unsafe head.append(headerLine, upTo: Self.headLimit) else { return refuse(.headTooLarge) }
        // To libcurl a line that begins with CR or LF is the end of the head, whatever else it holds.
        guard let first = unsafe headerLine.first, first == 0x0D || first == 0x0A else {
            if mayStall { driver.note(self) }
            return true
        }
        return endHead()
    }

    /// The same for a whole head at once, its end included, from a connection of HTTP/1.1.
    func received(head bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count > 5, unsafe bytes[5] == UInt8(ascii: "1") else { return refuse(.statusLineInvalid) }
        guard unsafe head.append(bytes, upTo: Self.headLimit) else { return refuse(.headTooLarge) }
        return endHead()
    }

    private func endHead() -> Bool {
        do throws(WireError) {
            try head.withSpan { (bytes) throws(WireError) in try scanner.scan(bytes) }
        } catch {
            return refuse(error.code)
        }
        if scanner.head.isInterim {
            if scanner.head.status == 100 { upload.wasContinued = true }
            let isTaken = head.withSpan { interims.append($0) }
            head.removeAll()
            driver.note(self)
            return isTaken || refuse(.interimsTooMany)
        }
        // Unless the request asked for another protocol, nobody did (RFC 9110 §15.2.2).
        guard scanner.head.status >= 200 || isUpgrade else { return refuse(.switchUnasked) }
        if scanner.head.status == 417, upload.awaitsContinue, !upload.isComplete {
            // libcurl would send the request again by itself, as another one on this handle.
            isExpectationRefused = true
            return false
        }
        if authenticatesConnection, isStepOfNTLM {
            head.removeAll()
            return true
        }
        if authenticatesConnection, isAheadOfBody {
            isLeftUnbound = true
            return false
        }
        answerBody.begin(behind: scanner.head, isBodyless: isHeadRequest)
        if answerBody.isUntilEnd, scanner.head.majorVersion == 1 { easy.watchClosure() }
        isHeadComplete = true
        headGo = driver.goes
        received = 0
        if mayMissEnd { driver.doubt(self) }
        driver.note(self)
        return true
    }

    /// Whether the head is a challenge that libcurl answers by itself on this connection: NTLM with a message. Without one it is a
    /// refusal (MS-NTHT §3.2).
    private var isStepOfNTLM: Bool {
        guard scanner.head.status == 401 else { return false }
        let fields = head.withSpan { ScannedHead(scanner.head, in: $0).fields }
        return fields[values: .wwwAuthenticate].contains { $0.lowercased().hasPrefix("ntlm ") }
    }

    /// Whether the head answers the request as libcurl sends it first to authenticate a connection, without its body. Only a challenge
    /// has a meaning there: any other answer is to a request that the caller has not made.
    private var isAheadOfBody: Bool {
        scanner.head.status != 401 && !upload.isComplete && !upload.hasBegun && easy.announcesNoBody
    }

    private func takeTrailer(_ line: UnsafeRawBufferPointer) -> Bool {
        let bytes = unsafe Span<UInt8>(_unsafeElements: line.assumingMemoryBound(to: UInt8.self))
        do throws(WireError) {
            try answerBody.trailers.append(line: bytes)
            return true
        } catch {
            return refuse(error.code)
        }
    }

    private func refuse(_ code: WireErrorCode) -> Bool {
        fault = WireError(upstream: code)
        return false
    }

    /// Collects a piece of the body, or pauses libcurl where a window is full.
    package func transferReceived(body data: UnsafeRawBufferPointer) -> BodyDisposition {
        guard body.count < Self.window else {
            isPaused = true
            return .pause
        }
        // What comes with a step of an authentication, which libcurl leaves out itself as a rule.
        if !isHeadComplete { return .consumed }
        driver.note(self)
        bodyGo = driver.goes
        received += data.count
        // At once for all that a window can hold: growing by doubling would move it, and end at more than it needs.
        if data.count > body.capacity - body.count {
            body.reserve(body.isEmpty ? data.count : Self.bodyCapacity - body.count)
        }
        let bytes = unsafe Span<UInt8>(_unsafeElements: data.assumingMemoryBound(to: UInt8.self))
        switch answerBody.take(bytes, into: &body) {
        case .taken:
            // Behind the end of a body TLS may keep for the next answer what came with it; no socket would tell.
            let isAtEnd = isOverTLS && answerBody.isWhole && easy.speaksHTTP1
            return isAtEnd && easy.hasUnreadTLS ? .abort : .consumed
        case .beyondEnd:
            // The answer is whole; its connection ends here, as what came behind it belongs to no request.
            return .abort
        case .broken(let code):
            _ = refuse(code)
            return .abort
        }
    }

    /// Asks the owner for the request's body.
    package func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        guard let owner else { return .abort }
        let supply = unsafe owner.supplyBody(into: buffer)
        upload.note(supply)
        awaitsBody = supply == .pause
        tookBody = true
        if mayMissEnd { driver.doubt(self) }
        driver.note(self)
        return supply
    }

    /// Only what has not begun: what is sent again is sent by the exchange, as a transfer of its own.
    package func transferRewinds(to offset: Int64) -> Bool { offset == 0 && !upload.hasBegun }

    /// A second attempt on another connection is for the owner to allow.
    package func transferWillSend(attempt: Int) -> Bool {
        if sharedStart != nil { driver.note(self) }
        // To libcurl a connection of HTTP/2 is alive whose server has ended TLS, and other than by a request one does not learn.
        if mayBeHTTP2, isOverTLS, easy.isClosedByServer {
            isStale = true
            return false
        }
        return attempt <= 1 || owner?.mayResend() == true
    }
}
