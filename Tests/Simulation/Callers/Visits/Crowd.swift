// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// Users who hold as many connections as they get: the judge of who has a place, and of whose connection is closed for another.
///
/// What it counts is seen from outside: how many connections a user or a listener's callers have at least, and at most. If that
/// is not enough to say that a rule is broken, it says nothing.
final class Crowd: Guest {
    /// The time after which nothing is left of a connection that was refused, in ms.
    private static let turnAwayTime: Int64 = 2_000

    private unowned let simulation: Simulation
    private var members: [CrowdMember] = []
    /// The user who comes most often.
    private let greedy: UInt32
    private var process: ObjectIdentifier?

    init(in simulation: Simulation) {
        self.simulation = simulation
        greedy = simulation.chance.pick([0, Listeners.admitted] + Listeners.others)
    }

    private var listeners: Listeners { simulation.setting.listeners }
    /// True if the kernel names the users.
    private var areUsersNamed: Bool { listeners.isUnix && LocalUsers.areKnown }

    var isIdle: Bool { !members.contains { $0.asking != nil } && (simulation.isOpen || members.isEmpty) }

    // MARK: Acts

    func act() {
        // With a process all its connections end.
        if process != ObjectIdentifier(simulation.process) { disconnect() }
        process = ObjectIdentifier(simulation.process)
        guard simulation.isOpen, simulation.isStormy else { return disconnect() }
        for member in members where member.look == .quiet { judgeTurnedAway(member) }
        switch simulation.chance.below(12) {
        case 0...4: arrive()
        case 5, 6: ask()
        case 7, 8: receive()
        case 9: leave()
        default: rush()
        }
    }

    /// Sends requests on all connections; other callers connect before the daemon has read them.
    private func rush() {
        for member in members where member.asking == nil { member.ask(changes: listeners.changes) }
        for _ in 0..<simulation.chance.pick(1...4) { arrive() }
    }

    private func ask() {
        let silent = members.filter { $0.asking == nil }
        guard !silent.isEmpty else { return }
        simulation.chance.pick(silent).ask(changes: listeners.changes)
    }

    private func leave() {
        guard !members.isEmpty, simulation.chance.oneIn(2) else { return }
        members.remove(at: simulation.chance.below(members.count)).leave()
        // So that the daemon, too, knows who is connected.
        simulation.process.settle()
    }

    func disconnect() {
        guard !members.isEmpty else { return }
        for member in members { member.leave() }
        members = []
        simulation.process.settle()
    }

    // MARK: Answers

    private func receive() {
        for member in members {
            let asking = member.asking
            let (answer, hasEnded) = member.receive()
            if let answer, let asking { judge(answer, to: member, asking: asking) }
            if hasEnded { remove(member) }
        }
    }

    private func judge(_ answer: CallerAnswer, to member: CrowdMember, asking: Int) {
        guard asking == listeners.changes, !["overloaded", "draining"].contains(answer.code) else { return }
        let isAdmitted = listeners.admits(member.user, at: member.listener)
        if answer.status == 200, !isAdmitted {
            simulation.violated("user \(member.user) is served, who is not under `users`")
        }
        if answer.status != 200, isAdmitted, !member.isTurnedAway {
            simulation.violated("user \(member.user) is refused: \(answer.status)")
        }
    }

    /// A connection that `users` refused when it came ends soon, whether or not it asks for something.
    private func judgeTurnedAway(_ member: CrowdMember) {
        guard member.isTurnedAway, simulation.now - member.since > Self.turnAwayTime else { return }
        simulation.violated("user \(member.user), who is not under `users`, holds a connection")
    }

    private func remove(_ member: CrowdMember) {
        member.leave()
        members.removeAll { $0 === member }
    }

    // MARK: Places

    private func arrive() {
        let choices = [0, Listeners.admitted] + Listeners.others
        let user = LocalUsers.known(simulation.chance.oneIn(2) ? greedy : simulation.chance.pick(choices))
        let listener: ListenerKind = simulation.chance.oneIn(3) ? .restricted : .common
        let present = members.filter { $0.look != .over }
        let held = present.filter(\.isHeld)
        guard let descriptor = simulation.process.connect(to: listener, as: user) else { return }
        let member = CrowdMember(
            descriptor, at: listener, user: user, since: simulation.now,
            isTurnedAway: !listeners.admits(user, at: listener), isWaiting: simulation.process.isLastWaiting)
        members.append(member)
        guard !member.isTurnedAway else { return }
        judge(held.filter { $0.look == .over }, for: member, among: present, held: held)
        if member.isWaiting { return }
        if member.isHeld {
            judgeAdmission(of: member, among: present, held: held.filter(\.isHeld))
        } else {
            judgeRefusal(of: member, among: present)
        }
    }

    /// The closed connections belong to a user who has more of them than the new one's user, or to that user.
    private func judge(
        _ closed: [CrowdMember], for member: CrowdMember, among present: [CrowdMember], held: [CrowdMember]
    ) {
        let own = held.count { $0.user == member.user }
        for other in closed {
            if other.asking != nil {
                simulation.violated("a connection of user \(other.user) is closed although its request is there")
            }
            // Ordinary callers are root's, and not all of them are seen here.
            guard areUsersNamed, other.user != member.user, other.user != 0 else { continue }
            let theirs = present.count { $0.user == other.user }
            if theirs <= own {
                simulation.violated(
                    "one of \(theirs) connections of user \(other.user) is closed for user \(member.user), who has \(own)"
                )
            }
        }
    }

    /// No user but root has more than half of what all others leave free, and no listener's callers use the slots of
    /// another.
    private func judgeAdmission(of member: CrowdMember, among present: [CrowdMember], held: [CrowdMember]) {
        let own = held.count { $0.user == member.user }
        let left = listeners.limit - (held.count - own)
        if areUsersNamed, member.user != 0, own >= left - left / 2 {
            simulation.violated("user \(member.user) gets a place beside \(own), of \(left) that are left")
        }
        guard member.listener == .common else { return }
        let kept = simulation.process.reserved - present.count { $0.listener == .restricted }
        if held.count + simulation.heldConnections >= listeners.limit - max(0, kept) {
            simulation.violated("a caller of one listener gets a place that is kept for another's")
        }
    }

    /// Root finds a place that is kept for the listener.
    private func judgeRefusal(of member: CrowdMember, among present: [CrowdMember]) {
        guard member.listener == .restricted, areUsersNamed, member.user == 0, !simulation.process.isDraining else {
            return
        }
        if present.count(where: { $0.listener == .restricted }) < simulation.process.reserved {
            simulation.violated("a caller is refused although its listener has places")
        }
    }
}

/// A connection of a crowd, and its user.
final class CrowdMember {
    /// A request that a listener answers by itself, without an upstream (RFC 9110 §7.6.2).
    private static let question = Array("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\n\r\n".utf8)

    let listener: ListenerKind
    let user: UInt32
    /// The time of its beginning, in ms since 1970.
    let since: Int64
    /// The number of times that `users` had come or gone when its request was sent; `nil` if no answer is awaited.
    private(set) var asking: Int?
    /// True if `users` did not name its user when it came.
    let isTurnedAway: Bool
    /// True if it waited until another worker closed a connection: then its outcome is not known here.
    let isWaiting: Bool
    private let descriptor: Int32
    private var input: [UInt8] = []
    private var hasEnded = false

    init(
        _ descriptor: Int32, at listener: ListenerKind, user: UInt32, since: Int64, isTurnedAway: Bool, isWaiting: Bool
    ) {
        self.descriptor = descriptor
        self.listener = listener
        self.user = user
        self.since = since
        self.isTurnedAway = isTurnedAway
        self.isWaiting = isWaiting
    }

    /// The daemon's end, as far as it can be seen.
    var look: CallerSocket.Look { hasEnded ? .over : CallerSocket.look(at: descriptor) }

    /// True if it has a place for certain.
    var isHeld: Bool { !isTurnedAway && !isWaiting && look == .quiet }

    /// Sends a request; `changes`: the number of times that `users` came or went until now.
    func ask(changes: Int) {
        if CallerSocket.send(Self.question, on: descriptor) { asking = changes } else { hasEnded = true }
    }

    /// Receives the available bytes. Returns the whole answer if it is there, and true if the connection has ended.
    func receive() -> (answer: CallerAnswer?, hasEnded: Bool) {
        while !hasEnded, let bytes = CallerSocket.receive(from: descriptor) {
            input += bytes
            hasEnded = bytes.isEmpty
        }
        guard let answer = CallerAnswer(input, to: "GET", isAtEnd: hasEnded), answer.isWhole else {
            return (nil, hasEnded)
        }
        input.removeFirst(min(answer.length, input.count))
        asking = nil
        return (answer, hasEnded)
    }

    func leave() { close(descriptor) }
}
