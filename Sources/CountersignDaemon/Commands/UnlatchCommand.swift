// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Settings
internal import SettingsReading
internal import System

struct UnlatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlatch", abstract: "Allow a rejected credential to be sent once more.",
        discussion: """
            Use it after the problem was fixed at the upstream. A changed credential needs no unlatching. Without a running daemon, \
            opens the latch in the state directory, so that the next `serve`, `run` or `login` sends the credential. Exits with \
            69 if no latch was closed.
            """)

    @OptionGroup var admin: AdminOptions

    @Argument(help: "The challenge whose latches to open.", completion: NameCompletion.challenges)
    var name: String

    @Flag(name: .long, help: "Print one JSON object.")
    var json = false

    func run() throws {
        let client = try admin.client()
        if admin.socket == nil, try !client.isListening() { return try unlatchStored() }
        let opened = try client.unlatch(name)
        if opened.isEmpty { try client.requireChallenge(named: name) }
        try finish(opened, note: "")
    }

    /// Opens the latches of a state directory that no daemon at the usual socket uses.
    private func unlatchStored() throws {
        let settings = try admin.configuration.load()
        let names = try ChallengeNames(settings).meant(by: name)
        let directory: String
        do throws(StateError) {
            directory = try StateDirectory.locate(environment: Process.environment, uid: getuid())
        } catch {
            throw Failure(error.reason, code: EX_CONFIG)
        }
        var told: Set<Int32> = []
        var opened = try unlatchRunning(in: directory, &told)
        guard told.isEmpty else {
            return try finish(opened, note: " in the processes that use \(directory)")
        }
        opened = try StoredLatches(directory: directory).unlatch(names)
        // A process that has begun meanwhile may have read the latches before.
        _ = try unlatchRunning(in: directory, &told)
        try finish(opened, note: " in \(directory), as no daemon runs")
    }

    /// Has each process that uses the state open the latches, `countersign run` among them. Throws if one does not answer.
    private func unlatchRunning(in directory: String, _ told: inout Set<Int32>) throws -> OpenedLatches {
        var opened = OpenedLatches()
        let processes: [StateProcess.Running]
        do throws(StateError) {
            processes = try StateProcess.running(in: directory)
        } catch {
            throw Failure(
                "it cannot be told which processes use the state in \(directory), so the latch was not opened: \(error.reason)",
                code: EX_UNAVAILABLE)
        }
        for running in processes where !told.contains(running.process) {
            do throws(Failure) {
                guard let socket = running.socket else { throw Failure("no admin socket", code: EX_UNAVAILABLE) }
                var client = AdminClient(path: socket)
                client.timeout = .seconds(10)
                opened = opened + (try client.unlatch(name))
                told.insert(running.process)
            } catch {
                throw Failure(
                    "process \(running.process) uses the state in \(directory), but does not answer (\(error.description)): the latch "
                        + "was not opened. Wait for its end, or stop it, and try again", code: EX_UNAVAILABLE)
            }
        }
        return opened
    }

    private func finish(_ opened: OpenedLatches, note: String) throws {
        guard !opened.isEmpty else { throw Failure("\(name) has no closed latch\(note)", code: EX_UNAVAILABLE) }
        if json {
            let (present, earlier) = (Int64(opened.present), Int64(opened.earlier))
            return Process.print(["opened": .integer(present), "earlier": .integer(earlier)])
        }
        let earlier = opened.earlier == 0 ? "" : ", and \(opened.earlier) of earlier values"
        Process.print("opened \(opened.present)\(earlier)\(note)")
    }
}

/// Challenges of a configuration, for a command without a daemon.
private struct ChallengeNames {
    /// Challenges that each login answers, by the name of the login.
    private var logins: [String: Set<String>] = [:]

    init(_ settings: Settings) throws {
        let plans = try ProxyComposition(settings: settings, material: LoginMaterial()).upstreams()
        for login in plans.flatMap(\.forEverybody).flatMap(\.logins.all) {
            logins[login.name, default: [login.name]].formUnion(login.asks)
            for name in login.asks { logins[name, default: []].insert(name) }
        }
    }

    /// Returns the challenges that a name means. Throws exit code 64 (EX_USAGE) and all names for an unknown one.
    func meant(by name: String) throws(Failure) -> Set<String> {
        if let meant = logins[name] { return meant }
        let names = logins.keys.sorted()
        let known = names.isEmpty ? "there are none" : "there are \(names.joined(separator: ", "))"
        throw Failure("no login has the name \(name)\(didYouMean(name, among: names)): \(known)", code: EX_USAGE)
    }
}

/// Latches in a state directory that no process uses.
private struct StoredLatches {
    let directory: String

    /// Opens the latches of `names` on disk, under the lock of the directory. Throws if they cannot be read or stored.
    func unlatch(_ names: Set<String>) throws(Failure) -> OpenedLatches {
        // Nothing is created: without latches there is nothing to open.
        guard FileSystem.allows("\(directory)/latches.sealed", F_OK) else {
            if !FileSystem.allows(directory, R_OK | X_OK), FileSystem.allows(directory, F_OK) {
                throw Failure("\(directory): this user may not read the state; try sudo", code: EX_NOPERM)
            }
            return OpenedLatches()
        }
        do {
            let sealed = SystemdCredentialsSource(environment: Process.environment)
            let key = try sealed.value(named: "state-key")
            guard key != nil || FileSystem.allows("\(directory)/key", F_OK) else {
                throw Failure(
                    "\(directory) is sealed with the systemd credential state-key of its unit: start the unit, and try again",
                    code: EX_UNAVAILABLE)
            }
            let state = try SealedStateStore(directory: directory, key: key)
            let log = UnwrittenLog.ofCommand()
            let attempts = try SealedAttemptStore(in: state) { log.record($1, directory: directory, reason: $0.reason) }
            let gate = SharedAttemptGate(store: attempts, now: SystemClock.wallClock)
            let stored = CountDownLatch(names.count)
            let opened = names.sorted().map { gate.unlatch($0) { stored.countDown() } }.reduce(OpenedLatches(), +)
            guard stored.wait(within: .seconds(30)), gate.unwritten.isEmpty else {
                let reason = log.lastReason.isEmpty ? "its disk does not answer" : log.lastReason
                throw Failure("the latch is still closed in \(directory): \(reason)", code: EX_UNAVAILABLE)
            }
            return opened
        } catch let failure as Failure {
            throw failure
        } catch let error as StateError {
            throw Failure(error.reason, code: EX_UNAVAILABLE)
        } catch {
            throw Failure("\(error)", code: EX_UNAVAILABLE)
        }
    }
}

extension AdminClient {
    /// Has the daemon open the latches of a challenge, and returns their numbers.
    fileprivate func unlatch(_ name: String) throws(Failure) -> OpenedLatches {
        let answer = try send("POST", "/unlatch?name=\(FormEncoding.percentEncoded(name))")
        guard answer.status == 200 else {
            throw Failure(answer.body["detail"]?.stringValue ?? "refused", code: EX_UNAVAILABLE)
        }
        func number(_ name: String) -> Int {
            min(max(0, Int(clamping: answer.body[name]?.integerValue ?? 0)), 1_000_000)
        }
        return OpenedLatches(present: number("opened"), earlier: number("earlier"))
    }
}
