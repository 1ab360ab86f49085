// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The daemon's end of a link.
protocol LinkClient: AnyObject {
    /// Reports that the connection is established, or was refused.
    func linkOpened(_ isEstablished: Bool)
    /// Reports that the server has read some of the bytes sent.
    func linkTookBytes()
    /// Reports bytes of the server.
    func linkReceived(_ bytes: [UInt8])
    /// Reports that the server has ended the connection; `isReset`: with a reset.
    func linkEnded(isReset: Bool)
}

/// One connection from the daemon to a server. Bytes arrive in pieces of any size, in order, at any time, or not at all.
final class Link {
    let simulation: Simulation
    let server: SimulatedServer
    private(set) weak var client: (any LinkClient)?
    private(set) var isOpen = false
    /// True if the daemon has closed its end.
    private(set) var isClosedByDaemon = false
    /// True if no more bytes reach the server, or come from it.
    private(set) var isCut = false
    private var toServer: [UInt8] = []
    private var toDaemon: [UInt8] = []
    private var isServerMoving = false
    private var isDaemonMoving = false
    private var isEnding = false
    private var reader: RequestReader
    /// The attempt whose judgement is on its way to the daemon.
    private var attempts: [(end: Int, attempt: Attempt)] = []
    private var delivered = 0
    private var written = 0
    /// The protection's word on the head of the present request.
    private var examined: Examination?
    /// The number of bytes that were written before the server ended the connection at rest.
    private var restEnd: Int?
    /// True while the server works on a request.
    private var isBusy = false

    init(_ client: any LinkClient, to server: SimulatedServer, in simulation: Simulation) {
        self.client = client
        self.server = server
        self.simulation = simulation
        reader = RequestReader(authority: server.authority, tellsBeginnings: server.habits.answersEarly)
        simulation.agenda.add { [self] in open() }
    }

    private func open() {
        guard !isClosedByDaemon else { return }
        isOpen = !simulation.isFault(12)
        if !isOpen { isCut = true }
        client?.linkOpened(isOpen)
    }

    /// True if nothing can happen on it any more.
    var isOver: Bool { isCut || isClosedByDaemon && toServer.isEmpty }
    /// The step in which the daemon began to send the present request.
    var sentAt = 0
    /// The number of bytes on their way to the server.
    var backlog: Int { toServer.count }

    // MARK: The daemon's end

    func send(_ bytes: [UInt8]) {
        if let restEnd, isCut || delivered > restEnd, bytes.starts(with: Array("POST ".utf8)) {
            simulation.violated("a POST is sent on a connection whose end has come (RFC 9112 §9.3.1)")
        }
        guard isOpen, !isCut, !isClosedByDaemon else { return }
        toServer += bytes
        moveToServer()
    }

    func close() {
        guard !isClosedByDaemon else { return }
        isClosedByDaemon = true
        client = nil
        loseAttempts()
    }

    // MARK: On the way

    private func moveToServer() {
        guard !isServerMoving, !toServer.isEmpty else { return }
        isServerMoving = true
        simulation.agenda.add { [self] in
            isServerMoving = false
            guard !isCut, !toServer.isEmpty else { return }
            if isClosedByDaemon, simulation.chance.oneIn(2) { return cut() }
            if simulation.isFault(60) { return cut() }
            let count = simulation.chance.oneIn(3) ? simulation.chance.pick(1...toServer.count) : toServer.count
            let piece = Array(toServer.prefix(count))
            toServer.removeFirst(count)
            receive(piece)
            client?.linkTookBytes()
            moveToServer()
        }
    }

    private func moveToDaemon() {
        guard !isDaemonMoving, !toDaemon.isEmpty || isEnding else { return }
        isDaemonMoving = true
        simulation.agenda.add { [self] in
            isDaemonMoving = false
            guard !isCut, !isClosedByDaemon else { return }
            if attempts.isEmpty ? simulation.isFault(60) : simulation.judgements.losesNext() { return cut() }
            guard !toDaemon.isEmpty else {
                isCut = true
                client?.linkEnded(isReset: false)
                return
            }
            let count = simulation.chance.oneIn(3) ? simulation.chance.pick(1...toDaemon.count) : toDaemon.count
            let piece = Array(toDaemon.prefix(count))
            toDaemon.removeFirst(count)
            delivered += count
            while let first = attempts.first, first.end <= delivered {
                first.attempt.isDelivered()
                attempts.removeFirst()
            }
            client?.linkReceived(piece)
            moveToDaemon()
        }
    }

    /// Ends the connection on both sides, with all that is on its way.
    func cut() {
        guard !isCut else { return }
        isCut = true
        loseAttempts()
        client?.linkEnded(isReset: true)
    }

    private func loseAttempts() {
        for entry in attempts { entry.attempt.isLost() }
        attempts = []
        if case .pass(let attempt)? = examined { attempt?.isLost() }
    }

    // MARK: The server's end

    private func receive(_ bytes: [UInt8]) {
        guard !isEnding else { return }
        reader.append(bytes)
        if let (request, part) = reader.skipped { server.check(part, of: request) }
        proceed()
    }

    private func proceed() {
        guard !isBusy, let event = next() else { return }
        isBusy = true
        simulation.happens(late: simulation.isFault(60)) { [self] in
            isBusy = false
            guard !isCut else { return }
            switch event {
            case .head(let request):
                let examination = server.examineHead(of: request)
                if case .demand(let early) = examination { return answer(early, to: request) }
                examined = examination
                if isClosedByDaemon { loseAttempts() }
                if !server.habits.ignoresExpectations { write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
            case .beginning(let request):
                let examination = server.examineBeginning(of: request)
                if case .demand(let early) = examination { return answer(early, inTheMiddleOf: request) }
                examined = examination
                if isClosedByDaemon { loseAttempts() }
            case .request(let request):
                defer { examined = nil }
                guard let answer = server.answer(to: request, examined: examined) else {
                    // A server that does not answer may end the connection instead.
                    isEnding = simulation.chance.oneIn(2)
                    return moveToDaemon()
                }
                return self.answer(answer, to: request)
            }
            proceed()
        }
    }

    private func next() -> RequestReader.Event? {
        do {
            return try reader.next(sentAt: sentAt)
        } catch {
            simulation.violated("a malformed request upstream: \(error)")
            return nil
        }
    }

    private func answer(_ answer: ServerAnswer, to request: ServerRequest) {
        let bytes = answer.bytes(for: request)
        let begin = bytes.count - answer.body.count + (answer.pause?.after ?? 0)
        if let pause = answer.pause, let number = request.order, begin < bytes.count {
            isBusy = true
            write(Array(bytes.prefix(begin)))
            simulation.slowAnswers.add(
                SlowAnswer(pause, to: number, on: self) { [self] in
                    isBusy = false
                    write(Array(bytes.dropFirst(begin)))
                    end(answer, to: request)
                })
            return
        }
        write(bytes)
        end(answer, to: request)
    }

    private func end(_ answer: ServerAnswer, to request: ServerRequest) {
        note(answer)
        if answer.closes || request.isIncomplete {
            isEnding = true
            moveToDaemon()
        } else {
            if server.habits.endsRests, simulation.chance.oneIn(3) { simulation.agenda.add { [self] in endRest() } }
            proceed()
        }
    }

    /// Answers a request before its body is there: then the server ends the connection, or ignores the rest.
    private func answer(_ answer: ServerAnswer, inTheMiddleOf request: ServerRequest) {
        write(answer.bytes(for: request))
        note(answer)
        if answer.closes {
            isEnding = true
            moveToDaemon()
        } else {
            reader.skipRest()
            proceed()
        }
    }

    /// Notes the judgement in an answer, which is on its way.
    private func note(_ answer: ServerAnswer) {
        guard let attempt = answer.attempt else { return }
        if isClosedByDaemon { attempt.isLost() } else { attempts.append((written, attempt)) }
    }

    /// Ends the connection at rest; the next request may be on its way (RFC 9112 §9.3.1).
    private func endRest() {
        guard !isCut, !isEnding, !isClosedByDaemon, !isBusy, reader.isAtRest, server.endsRest() else { return }
        simulation.tell("\(server.name) ends a connection at rest")
        restEnd = written
        if server.habits.tellsEnd {
            write(Array("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
        }
        isEnding = true
        moveToDaemon()
    }

    private func write(_ bytes: [UInt8]) {
        toDaemon += bytes
        written += bytes.count
        moveToDaemon()
    }
}
