// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

// HAProxy asks an authority in its own protocol (SPOP 2.0, SPOE.txt of HAProxy), on the same address: each frame is about one request, and
// the answer sets variables of HAProxy's. One frame is answered before the next is read, so that a connection has one exchange, as ever.
extension DownstreamConnection {
    /// Whether what is no request is HAProxy's, which asks an authority. Its first frame is shorter than 16 MiB, so the length
    /// begins with a zero; for a request that is refused at once.
    func beginsFrames() -> Bool {
        guard listener.isAuthority, !hasServed, input.withSpan({ $0[0] == 0 }) else { return false }
        agent = SPOPAgent()
        parser.reset()
        return true
    }

    /// Reads one frame, if it is there. Returns whether there may be more to do.
    func readFrame(by agent: SPOPAgent) -> Bool {
        let frame: SPOPFrame?
        do throws(SPOPFault) {
            let limit = agent.frameLimit ?? SPOPFrame.largest
            frame = try input.withSpan { (bytes) throws(SPOPFault) in try SPOPFrame.read(bytes, limit: limit) }
            guard let frame else {
                if !agent.isMidFrame { setTimeLimit(worker.limits.headTime) }
                agent.isMidFrame = true
                return false
            }
            agent.isMidFrame = false
            try take(frame, by: agent)
        } catch {
            disconnect(agent, error)
            return false
        }
        return phase != .closing && (phase != .head || !input.isEmpty)
    }

    /// Ends the connection, and says why.
    func disconnect(_ agent: SPOPAgent, _ fault: SPOPFault = .none) {
        agent.writer.disconnect(fault, to: &output)
        phase = .closing
        // What is left is bound by the time for writing.
        timer.disarm()
        worker.note(self)
    }

    /// Whether the time that is over was the agent's: HAProxy was waited for in vain.
    func timeLimitPassed(for agent: SPOPAgent) -> Bool {
        guard phase == .head, output.isEmpty, agent.isMidFrame || isQuiet || !hasServed else { return false }
        disconnect(agent, agent.isMidFrame ? .timeout : .none)
        return true
    }

    /// The request may go with these fields.
    func acknowledge(_ answer: SubrequestAnswer, by agent: SPOPAgent) {
        agent.writer.beginAcknowledgement(stream: agent.stream, number: agent.number)
        agent.writer.variable("status", number: 200)
        answer.forEachField { agent.writer.variable("field_", $0, text: $1) }
        if let cookies = answer.cookies.flatMap(cookieField) {
            if cookies.isEmpty {
                agent.writer.variable(true: "remove_cookie")
            } else {
                agent.writer.variable("field_cookie", text: cookies.span)
            }
        }
        let limit = agent.frameLimit ?? 0
        guard agent.writer.count <= limit else {
            let reply = LocalReply(
                .loginFailed,
                detail: """
                    The fields of the sessions take \(agent.writer.count) bytes, and HAProxy takes frames of \(limit). \
                    Raise its tune.bufsize.
                    """)
            accessNote?.status = reply.status
            return write(noted(reply, of: upstream), by: agent)
        }
        agent.writer.end(to: &output)
        acknowledged(agent)
    }

    /// The request may not go, and this is why.
    func acknowledge(_ reply: LocalReply, by agent: SPOPAgent) {
        write(reply, by: agent)
        accessNote?.status = reply.status
        requestEnded()
    }

    // MARK: Helpers

    private func take(_ frame: SPOPFrame, by agent: SPOPAgent) throws(SPOPFault) {
        switch frame.kind {
        case .hello where agent.frameLimit == nil:
            let hello = try input.withSpan { (bytes) throws(SPOPFault) in try SPOPHello(frame.payload, in: bytes) }
            input.consume(frame.length)
            agent.frameLimit = hello.frameLimit
            agent.writer.hello(frameLimit: hello.frameLimit, to: &output)
            if hello.isHealthCheck { phase = .closing }
            setTimeLimit(worker.limits.idleTime)
        case .notify where agent.frameLimit != nil:
            agent.stream = frame.stream
            agent.number = frame.number
            let asked = try input.withSpan { (bytes) throws(SPOPFault) in
                try SPOPNotification.read(frame.payload, in: bytes).map { $0.writeHead(in: bytes, to: &head) }
            }
            input.consume(frame.length)
            begin(asked, by: agent)
        case .disconnect:
            input.consume(frame.length)
            disconnect(agent)
        // A second greeting, or a question before it.
        case .hello, .notify: throw .frameInvalid
        case .unknown: input.consume(frame.length)
        }
        worker.note(self)
    }

    /// Begins with the request in question, whose head is there.
    private func begin(_ asked: Result<Void, SPOPNotification.Fault>, by agent: SPOPAgent) {
        body = BodyDecoder(framing: .none)
        isBodyComplete = true
        awaitsContinue = false
        isBodyHeld = false
        response.reset(isHead: false, version: .http11)
        // After a reload the address may serve something else.
        keepsAlive = listener.isAuthority
        if case .failure(let fault) = asked { return reply(LocalReply(fault, listener: listener.name)) }
        switch head.withSpan({ parser.parse($0) }) {
        case .complete(head.count) where listener.isAuthority:
            beginAccess(hasHead: true)
            if prepareSubrequest() { start() }
        case .refused(let error): reply(LocalReply(error))
        case .complete, .incomplete: reply(LocalReply(.argumentInvalid, listener: listener.name))
        }
    }

    private func write(_ reply: LocalReply, by agent: SPOPAgent) {
        let limit = agent.frameLimit ?? 0
        agent.writer.beginAcknowledgement(stream: agent.stream, number: agent.number)
        agent.writer.variable("status", number: UInt64(reply.status))
        if let retryAfter = reply.retryAfter {
            agent.writer.variable("retry_after", number: UInt64(max(0, retryAfter)))
        }
        for (name, value) in reply.variables where agent.writer.fits(value.utf8.count, within: limit) {
            agent.writer.variable("", name.utf8.span, text: value.utf8.span)
        }
        agent.writer.end(to: &output)
        acknowledged(agent)
    }

    private func acknowledged(_ agent: SPOPAgent) {
        if !staysOpen { agent.writer.disconnect(.none, to: &output) }
        response.answered()
        worker.note(self)
    }
}

extension LocalReply {
    /// The frame does not say which request it is about.
    fileprivate init(_ fault: SPOPNotification.Fault, listener: String) {
        let said =
            switch fault {
            case .messageUnknown: "Over SPOP an authority takes one message, and its name is authorize."
            case .argumentsIncomplete:
                "The message authorize takes method=method target=pathq fields=req.hdrs, each once and not empty."
            case .argumentInvalid: "The arguments of the message authorize make no head of a request."
            }
        self.init(
            .badRequest,
            detail: "\(said) The HAProxy that asks listener \(listener) has to be configured so; see the examples.")
    }

    /// What HAProxy can say of it: the more important first, for a frame may have no room for all.
    fileprivate var variables: [(name: String, value: String)] {
        [
            ("code", code.rawValue), ("detail", visibleDetail), ("proxy_status", proxyStatus),
            ("document", plainDocument),
        ]
    }

    /// The document in ASCII and in one line: HAProxy would write anything else as `%0A`, say.
    private var plainDocument: String {
        String(decoding: document, as: UTF8.self).utf16.reduce(into: "") { text, unit in
            switch unit {
            case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            case 0x80...:
                let digits = String(unit, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: break
            }
        }
    }
}
