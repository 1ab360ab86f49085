// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An answer whose server waits, within the body, until its caller has the beginning: the judge of rule 12 for answers
/// that may be examined.
final class SlowAnswer {
    /// An interruption of a body.
    struct Pause {
        /// The number of bytes before it, at least.
        var after: Int
        /// True if the beginning may be a page, which is examined for a moment.
        var mayBeHeld: Bool
    }

    /// The steps in which a caller reads the available bytes, and the longest examination in ms.
    private static let (reading, look) = (4_000, Int64(5_000))

    let number: Int
    let isPrompt: Bool
    private unowned let link: Link
    private let simulation: Simulation
    private let began: Int64
    private var due: Int
    private let proceed: () -> Void

    init(_ pause: Pause, to number: Int, on link: Link, _ proceed: @escaping () -> Void) {
        self.number = number
        self.link = link
        self.proceed = proceed
        simulation = link.simulation
        isPrompt = !pause.mayBeHeld
        began = simulation.now
        due = isPrompt ? simulation.steps : .max
    }

    /// Goes on if the caller has the beginning. Returns true when it is over.
    fileprivate func look(hasArrived: Bool) -> Bool {
        if link.isCut || link.isClosedByDaemon { return true }
        if hasArrived || !simulation.awaits(number) {
            proceed()
            return true
        }
        if due == .max, simulation.now - began > Self.look { due = simulation.steps }
        guard due != .max, simulation.steps > due + Self.reading else { return false }
        simulation.violated(
            "rule 12: the beginning of \(number) is held while its server sends\(isPrompt ? ", although it is no page" : "")"
        )
        return true
    }
}

/// The answers that are interrupted at the moment.
struct SlowAnswers {
    private var answers: [SlowAnswer] = []
    private var arrived: Set<Int> = []

    /// True if no long time may pass: something has to arrive at once.
    var isUrgent: Bool { answers.contains { $0.isPrompt } }

    mutating func add(_ answer: SlowAnswer) {
        arrived.remove(answer.number)
        answers.append(answer)
    }

    /// Notes that a caller has some of the body of an answer.
    mutating func hasArrived(_ number: Int) { if !answers.isEmpty { arrived.insert(number) } }

    /// Looks at each.
    mutating func look() {
        guard !answers.isEmpty else { return }
        let arrived = arrived
        answers.removeAll { $0.look(hasArrived: arrived.contains($0.number)) }
        if answers.isEmpty { self.arrived = [] }
    }
}
