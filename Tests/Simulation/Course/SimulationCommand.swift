// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Synchronization

/// `simulation SEED [STEPS]` runs one simulation; `simulation --seconds S [--from SEED]` runs one simulation after the other.
/// `--scene WORDS` makes all of them of these; see `Scene`. `simulation --scenes [--from SEED] [--to SEED]` runs those seeds, two by
/// default, in each scene; `--events N` is that with up to N kinds of events at once in place of two.
enum SimulationCommand {
    /// The usual number of steps of one simulation.
    static let steps = 20_000

    static func run(_ arguments: [String]) {
        // The order of a dictionary must follow from the seed as well: set by `Tests/Simulation/run`.
        guard unsafe getenv("SWIFT_DETERMINISTIC_HASHING") != nil else {
            tell("set SWIFT_DETERMINISTIC_HASHING=1")
            exit(64)
        }
        // The run depends on the order of descriptor numbers: they begin with the same number in each process.
        for descriptor in 3..<Int32(1_024) { close(descriptor) }
        CrashLine.install()
        var seconds = 0
        var seed: UInt64 = 1
        var steps = Self.steps
        var isOne = false
        var isTold = false
        var most = 5
        var last = UInt64.max
        var scenes: [String] = []
        var rest = arguments.dropFirst()
        while let word = rest.popFirst() {
            switch word {
            case "--seconds": seconds = rest.popFirst().flatMap { Int($0) } ?? 60
            case "--from": seed = rest.popFirst().flatMap { UInt64($0) } ?? 1
            case "--tell": isTold = true
            case "--to": last = rest.popFirst().flatMap { UInt64($0) } ?? last
            case "--findings": most = rest.popFirst().flatMap { Int($0) } ?? most
            case "--scene":
                let words = rest.popFirst() ?? ""
                guard Scene(words) != nil else {
                    tell("--scene: \(words): a kind of server, events, or nodes, separated by commas")
                    exit(64)
                }
                scenes = [words]
            case "--scenes": scenes = Scene.all(events: 2)
            case "--events": scenes = Scene.all(events: rest.popFirst().flatMap { Int($0) } ?? 2)
            case "--steps": steps = rest.popFirst().flatMap { Int($0) } ?? steps
            default:
                isOne = true
                seed = UInt64(word) ?? 1
            }
        }
        if isOne { exit(one(seed, steps, isTold, scenes.first)) }
        if scenes.count > 1 { (seconds, last) = (seconds == 0 ? .max : seconds, last == .max ? seed + 1 : last) }
        var tally = Tally(steps: steps, most: most, seconds: seconds)
        for words in scenes { tally.run(seed...last, in: words) }
        if scenes.isEmpty { tally.run(seed...last, in: nil) }
        exit(tally.end())
    }

    /// Prints a line at once, so that it is there before a crash.
    private static func tell(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(1, $0.baseAddress, $0.count) }
    }

    private static func one(_ seed: UInt64, _ steps: Int, _ isTold: Bool, _ words: String?) -> Int32 {
        let report = report(of: seed, steps: steps, isTold: isTold, in: words)
        for line in report.story { tell(line) }
        tell(report.description)
        return report.violation == nil ? 0 : 1
    }

    private static func report(
        of seed: UInt64, steps: Int, isTold: Bool = false, in words: String?
    ) -> SimulationReport {
        CrashLine.set("seed \(seed)\(option(words))")
        return SimulationReport(seed: seed, steps: steps, isTold: isTold, scene: words.flatMap(Scene.init))
    }

    /// Returns the option that repeats a scene.
    private static func option(_ words: String?) -> String { words.map { " --scene \"\($0)\"" } ?? "" }

    /// The runs of many seeds.
    private struct Tally {
        let steps: Int
        let most: Int
        let seconds: Int
        private let begin = Int(time(nil))
        private var (sum, runs, found) = (0, 0, 0)
        private var answers: [String: Int] = [:]
        private var last: UInt64 = 0

        init(steps: Int, most: Int, seconds: Int) { (self.steps, self.most, self.seconds) = (steps, most, seconds) }

        /// Runs the seeds one after the other, while there is time.
        mutating func run(_ seeds: ClosedRange<UInt64>, in words: String?) {
            var seed = seeds.lowerBound
            while Int(time(nil)) - begin < seconds, found < most, seeds.contains(seed) {
                let report = report(of: seed, steps: steps, in: words)
                sum += report.steps
                runs += 1
                answers.merge(report.answers, uniquingKeysWith: +)
                if report.violation != nil {
                    found += 1
                    tell("\(report)\(option(words))")
                }
                last = seed
                seed += 1
            }
        }

        /// Prints the counts, and returns the status of the process.
        func end() -> Int32 {
            let elapsed = max(1, Int(time(nil)) - begin)
            tell(
                "\(sum) steps of \(runs) runs (to seed \(last)) in \(elapsed) s, \(sum / elapsed * 60) a minute, \(found) findings"
            )
            tell(answers.sorted { $0.value > $1.value }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
            return found == 0 ? 0 : 1
        }
    }
}

/// The result of one simulation.
struct SimulationReport: CustomStringConvertible {
    let seed: UInt64
    let steps: Int
    let violation: String?
    let answers: [String: Int]
    let trace: UInt64
    /// True if a crowd held connections: whose connection is closed for another may follow from the numbers of descriptors.
    let isCrowded: Bool
    private let weather: String
    let story: [String]

    private static let files = Atomic<Int>(0)

    /// Returns the path of a socket of its own: several runs may be under way at once.
    private static func file() -> String {
        "/tmp/countersign-simulation-\(getpid())-\(files.wrappingAdd(1, ordering: .relaxed).newValue)"
    }

    /// Runs the simulation of `seed`.
    init(seed: UInt64, steps: Int, isTold: Bool = false, scene: Scene? = nil) {
        self.seed = seed
        do {
            let simulation = try Simulation(seed: seed, file: Self.file(), isTold: isTold, scene: scene)
            simulation.run(steps: steps)
            self.steps = simulation.steps
            // One line, whatever the body contains.
            violation = simulation.violation?.split(separator: "\n").joined(separator: " ")
            answers = simulation.rules.answers
            trace = simulation.trace
            isCrowded = simulation.setting.listeners.isCrowded
            story = simulation.story
            weather =
                "\(simulation.weather.description); \(simulation.servers.map { "\(type(of: $0.protection))" }.joined(separator: ", "))"
            simulation.release()
        } catch {
            (self.steps, violation, answers, trace, weather, story) = (0, "\(error)", [:], 0, "none", [])
            isCrowded = false
        }
    }

    var description: String {
        let answers = answers.sorted { $0.value > $1.value }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return "seed \(seed): \(violation ?? "well") after \(steps) steps (\(weather)); \(answers); trace \(trace)"
    }
}

/// The line that a crash of the program prints: which run it was, so that it can be repeated.
///
/// It is written before each run, because a handler of a signal may not allocate (signal-safety(7)).
enum CrashLine {
    private static let capacity = 1_024
    private nonisolated(unsafe) static let bytes = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    private nonisolated(unsafe) static var count = 0

    /// Makes each crash print the line, and then end the process as it does by itself.
    static func install() {
        set("")
        for signal in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
            _ = Glibc.signal(signal) { signal in
                _ = unsafe write(1, CrashLine.bytes, CrashLine.count)
                _ = Glibc.signal(signal, SIG_DFL)
                raise(signal)
            }
        }
    }

    /// Sets the run that is under way.
    static func set(_ run: String) {
        let line = Array("\(run): crashed\n".utf8.prefix(capacity))
        unsafe bytes.copyMemory(from: line, byteCount: line.count)
        unsafe count = line.count
    }
}
