// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc

/// A program that speaks to the proxy over a socket, in pieces of any size.
final class SimulatedCaller {
    private unowned let simulation: Simulation
    private var descriptor: Int32 = -1
    private(set) var order: Order?
    private var trespass: Trespass?
    private var output: [UInt8] = []
    private var input: [UInt8] = []
    private var hasEnded = false
    private var lastUse: Int64 = 0
    private var silence: Silence?
    /// The step in which the request began.
    private(set) var began = 0

    /// The token that names the caller, at the listener for such callers.
    private let token: CallerToken?

    init(in simulation: Simulation, token: CallerToken?) {
        self.simulation = simulation
        self.token = token
    }

    /// True if the daemon holds the connection for certain.
    var isHeld: Bool { descriptor >= 0 && !hasEnded && CallerSocket.look(at: descriptor) == .quiet }

    /// True if no answer is awaited.
    var isIdle: Bool { order == nil && trespass == nil }

    /// True if not all of a request is sent.
    var isSending: Bool { !output.isEmpty }

    /// Does one thing: begins a request, sends or receives a piece, or leaves.
    func act() {
        if silence != nil { return keepSilent() }
        if isIdle {
            if simulation.isOpen { begin() }
            return
        }
        if simulation.weather.losesCallers, simulation.isStormy, simulation.chance.oneIn(120) { return leave() }
        if !output.isEmpty, simulation.chance.oneIn(2) { send() } else { receive() }
    }

    private func begin() {
        // An idle connection may end after a while: no peer relies on it (RFC 9112 §9.3.1).
        if descriptor < 0 || hasEnded || simulation.chance.oneIn(10) || simulation.now - lastUse > 30_000 {
            disconnect()
            let process = simulation.chance.pick(simulation.processes)
            guard let connected = process.connect(to: token == nil ? .common : .token) else { return }
            descriptor = connected
            if simulation.chance.oneIn(16) {
                silence = Silence(from: simulation.clock.now)
                return
            }
        }
        if token == nil, simulation.chance.oneIn(8) { return beginTrespass() }
        beginOrder()
        if order?.isRead == true, simulation.chance.oneIn(60) {
            let sent = simulation.chance.pick(1...20)
            silence = Silence(from: simulation.clock.now, rest: Array(output.dropFirst(sent)))
            output = Array(output.prefix(sent))
            send(all: true)
        }
    }

    private func beginTrespass() {
        began = simulation.steps
        let trespass = Trespass.any(&simulation.chance, in: simulation.setting, of: simulation.servers[0])
        self.trespass = trespass
        if trespass.method == "POST" { simulation.rules.lastBrokenBody = simulation.now }
        output = Array(trespass.request.utf8)
        if trespass.endsConnection, simulation.chance.oneIn(2) { output += Array(Trespass.smuggled.utf8) }
    }

    private func beginOrder() {
        began = simulation.steps
        var order = simulation.makeOrder(of: token)
        order.wasAccepted =
            order.server.protection.account.stored.map { order.server.protection.account.isAccepted($0) } ?? false
        self.order = order
        simulation.tell(
            "caller \(descriptor): \(order.method) \(order.number) to \(order.server.name)\(order.isForbidden ? " forbidden" : ""), \(order.body.count) bytes\(order.isChunked ? " chunked" : "")\(order.expectsContinue ? " expecting" : "")"
        )
        output = order.bytes(host: "\(order.server.name).localhost:8080", chance: &simulation.chance)
        if let token { output = token.presented(in: output) }
    }

    /// Sends a piece, or as much as there is room for.
    private func send(all: Bool = false) {
        var count = !all && simulation.chance.oneIn(3) ? simulation.chance.pick(1...output.count) : output.count
        if !all, order?.isSlow == true { count = min(count, simulation.chance.pick(1...400)) }
        let sent = unsafe output.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        lastUse = simulation.now
        if sent > 0 { output.removeFirst(sent) } else if sent < 0, errno != EAGAIN { output = [] }
    }

    private func receive() {
        let limit = simulation.chance.oneIn(4) ? simulation.chance.pick(1...2_000) : 65_536
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { space, count in
            let received = unsafe recv(descriptor, space.baseAddress, limit, Int32(MSG_DONTWAIT))
            count = max(0, received)
            if received == 0 || (received < 0 && errno != EAGAIN) { hasEnded = true }
        }
        if bytes.isEmpty, !hasEnded { return }
        input += bytes
        if SecretWatch.holdsSecret(input) {
            simulation.violated("a secret reaches a caller: \(SecretWatch.lineWithSecret(input))")
        }
        let method = order?.method ?? trespass?.method ?? "GET"
        let answer = CallerAnswer(input, to: method, isAtEnd: hasEnded)
        if let order, answer?.body.isEmpty == false { simulation.slowAnswers.hasArrived(order.number) }
        if let answer, answer.isWhole || hasEnded {
            if !isFollowed(answer) { take(answer) }
        } else if hasEnded {
            take(nil)
        }
    }

    /// Returns true if the connection must still end after this answer. No other answer may follow: bytes after the
    /// request are not read as one.
    private func isFollowed(_ answer: CallerAnswer) -> Bool {
        guard order?.isUpgrade == true || trespass?.endsConnection == true, answer.isWhole else { return false }
        // An answer to a caller rejected before its request was read is a full one, so it has a body even for HEAD.
        if ["overloaded", "draining"].contains(answer.codeOfHead) { return false }
        if input.count > answer.length {
            simulation.violated("\(trespass?.name ?? "Upgrade"): what follows is read as a request")
        }
        return !hasEnded && answer.value("connection")?.lowercased() == "close"
    }

    private func take(_ answer: CallerAnswer?) {
        if let order {
            simulation.tell(
                "answer \(descriptor) to \(order.number): \(answer.map { "\($0.status) \($0.code ?? "") \($0.fields)" } ?? "none")"
            )
            simulation.rules.judge(answer, to: order)
        }
        if let trespass { simulation.rules.judge(answer, to: trespass) }
        silence = nil
        let mayContinue =
            answer?.isWhole == true && !hasEnded && output.isEmpty && trespass == nil && order?.isUpgrade != true
            && answer?.value("connection")?.lowercased() != "close" && !mayBeUnread(answer)
        if mayContinue, let answer { input.removeFirst(min(answer.length, input.count)) } else { disconnect() }
        (order, trespass, output) = (nil, nil, [])
    }

    /// Returns true if the server may have left part of the body unread and therefore ends the connection after its
    /// answer.
    private func mayBeUnread(_ answer: CallerAnswer?) -> Bool {
        guard let order, order.server.habits.answersEarly, !order.body.isEmpty || order.isChunked else { return false }
        return answer?.code == nil && answer?.value("x-answer") == nil
    }

    private func leave() {
        simulation.tell("caller of \(order?.number ?? 0) leaves")
        // The rest of the answer is lost.
        for server in simulation.servers { server.protection.account.excuse() }
        simulation.callersLost += 1
        simulation.sessions.callerLeft()
        disconnect()
        (order, trespass) = (nil, nil)
    }

    func disconnect() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
        (input, output, hasEnded) = ([], [], false)
    }

    // MARK: Silence

    /// Waits, and looks whether the proxy waits as well.
    private func keepSilent() {
        guard silence?.isOver(at: simulation.clock.now) == true || !simulation.isOpen && order == nil else {
            if order != nil { receive() }
            return
        }
        // Now it would be late.
        (silence, order) = (nil, nil)
        disconnect()
    }

    /// Sends the bytes held back if its connection's time limit ends within the next `duration`.
    func timePasses(by duration: Duration) {
        guard let silence, silence.ends(within: duration, from: simulation.clock.now) else { return }
        self.silence = nil
        if order != nil { output = silence.rest } else if simulation.isOpen { beginOrder() } else { disconnect() }
        if !output.isEmpty { send(all: true) }
    }
}

/// A caller's silence on its connection, almost until the proxy's time limit: bytes sent then are not late.
struct Silence {
    /// The time limits of the proxy: for the first byte, and for a head from its first byte on.
    private static let firstByte = Duration.seconds(10)
    private static let head = Duration.seconds(30)
    /// The time that the proxy may take to notice the start of the limit.
    private static let notice = Duration.milliseconds(5)

    private let end: LoopInstant
    /// The rest of a request whose beginning is sent.
    let rest: [UInt8]

    /// Creates the silence of a caller that begins it now, with the `rest` of a head to send.
    init(from now: LoopInstant, rest: [UInt8] = []) {
        end = now + (rest.isEmpty ? Self.firstByte : Self.head)
        self.rest = rest
    }

    /// Returns true if the limit ends within the next `duration`.
    func ends(within duration: Duration, from now: LoopInstant) -> Bool {
        now < end && now + duration > end + Self.notice
    }

    /// Returns true if the limit may have ended.
    func isOver(at now: LoopInstant) -> Bool { now >= end }
}
