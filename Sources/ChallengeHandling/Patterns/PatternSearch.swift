// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Search for a pattern, with all its threads side by side: no text makes it go back (Thompson, Pike).
struct PatternSearch {
    /// Thread of the search: an instruction, and the group so far.
    private struct Thread {
        var instruction: Int
        var start: Int
        var end: Int
    }

    /// Maximum number of steps of a search: a few milliseconds. A step is one instruction of one thread.
    static let mostSteps = 400_000

    private let program: PatternProgram
    /// The number of the position at which an instruction was last reached.
    private var reached: [Int]
    private var waiting: [Thread] = []
    private var stepsLeft = PatternSearch.mostSteps

    /// Creates a search by `program`.
    init(_ program: PatternProgram) {
        self.program = program
        reached = Array(repeating: -1, count: program.instructions.count)
    }

    /// Returns the range of the group where the pattern first matches.
    ///
    /// Nil if it does not match, if it matches there by a branch without the group, or after too many steps.
    mutating func firstGroup(in text: Span<UInt8>) -> Range<Int>? {
        var (current, next): ([Thread], [Thread]) = ([], [])
        var found: Range<Int>?
        var hasMatched = false
        var position = 0
        while true {
            if !hasMatched {
                if current.isEmpty { position = nextBeginning(from: position, in: text) }
                follow(Thread(instruction: 0, start: -1, end: -1), at: position, to: &current)
            }
            guard !current.isEmpty, stepsLeft > 0 else { return stepsLeft > 0 ? found : nil }
            next.removeAll(keepingCapacity: true)
            threads: for thread in current {
                stepsLeft -= 1
                switch program.instructions[thread.instruction] {
                case .byte(let set):
                    guard position < text.count, set.contains(text[position]) else { continue }
                    var thread = thread
                    thread.instruction += 1
                    follow(thread, at: position + 1, to: &next)
                case .match:
                    // Threads after this one are less preferred.
                    hasMatched = true
                    found = thread.start < 0 ? nil : thread.start..<max(thread.start, thread.end)
                    break threads
                case .split, .jump, .groupStart, .groupEnd: continue
                }
            }
            swap(&current, &next)
            guard position < text.count else { return found }
            position += 1
        }
    }

    /// Returns the next position at which a match may begin; the end of the text if there is none.
    private func nextBeginning(from start: Int, in text: Span<UInt8>) -> Int {
        var position = start
        let prefix = program.prefix.span
        guard prefix.count > 0 else {
            while position < text.count, !program.firstBytes.contains(text[position]) { position += 1 }
            return position
        }
        let first = prefix[0]
        while position < text.count {
            if text[position] == first, position + prefix.count <= text.count {
                var length = 1
                while length < prefix.count, text[position + length] == prefix[length] { length += 1 }
                if length == prefix.count { return position }
            }
            position += 1
        }
        return position
    }

    /// Adds the threads that `thread` leads to without consuming a byte, the preferred first.
    private mutating func follow(_ thread: Thread, at position: Int, to threads: inout [Thread]) {
        waiting.append(thread)
        while var thread = waiting.popLast() {
            guard reached[thread.instruction] != position else { continue }
            reached[thread.instruction] = position
            stepsLeft -= 1
            switch program.instructions[thread.instruction] {
            case .byte, .match: threads.append(thread)
            case .split(let first, let second):
                var other = thread
                other.instruction = second
                thread.instruction = first
                waiting.append(other)
                waiting.append(thread)
            case .jump(let target):
                thread.instruction = target
                waiting.append(thread)
            case .groupStart:
                thread.start = position
                thread.instruction += 1
                waiting.append(thread)
            case .groupEnd:
                thread.end = position
                thread.instruction += 1
                waiting.append(thread)
            }
        }
    }
}
