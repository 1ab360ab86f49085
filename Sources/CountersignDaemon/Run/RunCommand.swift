// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Logging
internal import Settings
internal import SettingsReading

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run a command with listeners of its own, and exit with its status.",
        usage: "countersign run [--config FILE] [--env NAME=VALUE]... -- COMMAND [ARGUMENT]...",
        discussion: """
            For cron jobs and scripts that need no service. Opens the listeners of the configuration at free ports of 127.0.0.1, \
            which only processes of this user may use, runs the command, finishes the exchanges under way, and exits with the \
            command's status: 128 and the number of a signal that ended it, 127 if there is no such command.

            Without --env the command finds the address of the upstream in COUNTERSIGN_URL, or in COUNTERSIGN_<UPSTREAM>_URL for \
            each of several upstreams (upper case, other characters than letters and digits as underscores), and that of the first \
            listener in http_proxy; no_proxy then also names loopback. With --env it gets the variables named there and none of these.

            In a value of --env, {upstream:NAME} is the address that leads to that upstream, and {listener} or {listener:ADDRESS} \
            that of the first listener or of the one at ADDRESS, for a program that knows no other setting than http_proxy. The \
            command gets no other variable that begins with COUNTERSIGN_, so it sees no secret.

            Standard output is the command's alone: an access log goes to its file only. Nothing is written if all goes well; the \
            audit record is left out unless the journal receives it.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp(
            "A variable of the command, such as BASE_URL={upstream:bank}. May be repeated.", valueName: "name=value"))
    var env: [String] = []

    @Argument(parsing: .postTerminator, help: "The command and its arguments, after --.")
    var command: [String] = []

    func validate() throws {
        if command.isEmpty { throw ValidationError("name the command after --: countersign run -- COMMAND") }
    }

    func run() throws {
        let settings = try configuration.load()
        let variables =
            try env.isEmpty ? RunVariable.defaults(settings) : env.map { try RunVariable($0, settings) }
        let program = try ChildCommand.find(command, environment: Process.environment)
        guard variables.contains(where: { !$0.places.isEmpty }) else {
            throw Failure(
                "no --env has {upstream:NAME} or {listener}: the command would not find the listeners. Without any --env it gets COUNTERSIGN_URL",
                code: EX_USAGE)
        }
        let listeners = PrivateListeners(settings, for: variables.flatMap(\.places))
        let folder = try TemporaryFolder.make("run")
        defer { TemporaryFolder.remove(folder) }
        var served = settings
        served.listeners = listeners.settings
        served.admin.addresses = [.unix(path: "\(folder)/admin.sock", mode: 0o600)]
        // The output of the command stays readable.
        served.log.level = max(served.log.level, .warning)
        if served.accessLog.path == nil { served.accessLog.format = .none }
        // The audit record is for the journal. Elsewhere, a login that succeeded would be a mail of cron.
        if Process.environment["JOURNAL_STREAM"] == nil { served.audit = .none }
        let child = ChildCommand(program, arguments: command)
        try StartFailure.explained {
            let daemon = try Daemon(settings: served, path: configuration.config)
            try daemon.run { ports in
                var environment = Process.environment.filter { !$0.key.hasPrefix("COUNTERSIGN_") }
                environment["CREDENTIALS_DIRECTORY"] = nil
                if env.isEmpty { RunVariable.excludeLoopback(from: &environment) }
                for variable in variables {
                    environment[variable.name] = variable.text { listeners.address(of: $0, ports) }
                }
                try child.start(environment: environment)
            } mayEnd: { signal in
                child.passOn(signal)
            }
        }
        if let code = child.exitCode, code != 0 { throw ExitCode(code) }
    }
}

/// A variable of the command of `countersign run`: a name, and a value with places for addresses.
struct RunVariable {
    /// What an address leads to.
    enum Place: Hashable {
        /// The listener of that index in the configuration.
        case listener(Int)
        /// The upstream of that name.
        case upstream(String)
    }

    private enum Part {
        case text(String)
        case address(Place)
    }

    /// The variable's name.
    let name: String
    private var parts: [Part] = []

    /// Reads `NAME=VALUE`. Throws if the value names what the configuration does not have.
    init(_ argument: String, _ settings: Settings) throws(Failure) {
        guard let sign = argument.firstIndex(of: "="), sign > argument.startIndex else {
            throw Failure("--env \(argument): write NAME=VALUE", code: EX_USAGE)
        }
        name = String(argument[..<sign])
        var rest = argument[sign...].dropFirst()
        while let start = rest.firstIndex(of: "{") {
            let inner = rest[start...].dropFirst()
            let end = inner.firstIndex { "{}".contains($0) }
            let words = inner[..<(end ?? inner.startIndex)].split(separator: ":", maxSplits: 1).map(String.init)
            if let end, inner[end] == "}", let place = try Self.place(words, settings) {
                parts += [.text(String(rest[..<start])), .address(place)]
                rest = inner[end...].dropFirst()
            } else {
                // A brace of the value itself, as in JSON.
                parts.append(.text(String(rest[...start])))
                rest = inner
            }
        }
        parts.append(.text(String(rest)))
    }

    /// Returns what the words between braces name; nil if they are text of the value.
    private static func place(_ words: [String], _ settings: Settings) throws(Failure) -> Place? {
        switch (words.first, words.count) {
        case ("upstream", 2):
            let names = settings.upstreams.map(\.name)
            guard names.contains(words[1]) else {
                throw Failure(
                    "there is no upstream \(words[1])\(didYouMean(words[1], among: names)); there are: "
                        + names.joined(separator: ", "), code: EX_USAGE)
            }
            return .upstream(words[1])
        case ("listener", 1): return .listener(0)
        case ("listener", 2):
            let addresses = settings.listeners.map { "\($0.address)" }
            guard let index = addresses.firstIndex(of: words[1]) else {
                throw Failure(
                    "there is no listener at \(words[1]); there are: \(addresses.joined(separator: ", "))",
                    code: EX_USAGE)
            }
            return .listener(index)
        default: return nil
        }
    }

    /// Returns the variables of a command without `--env`: an address for each upstream, and `http_proxy`. Throws if two upstreams
    /// would have one variable.
    static func defaults(_ settings: Settings) throws(Failure) -> [RunVariable] {
        var variables: [RunVariable] = []
        for upstream in settings.upstreams.map(\.name) {
            let name = settings.upstreams.count == 1 ? "COUNTERSIGN_URL" : "COUNTERSIGN_\(variablePart(upstream))_URL"
            if let other = variables.first(where: { $0.name == name }), case .upstream(let first)? = other.places.first
            {
                throw Failure(
                    "\(name) would be the address of both \(first) and \(upstream): name the variables, "
                        + "such as --env BASE_URL={upstream:\(upstream)}", code: EX_USAGE)
            }
            variables.append(RunVariable(name: name, .upstream(upstream)))
        }
        return variables + [RunVariable(name: "http_proxy", .listener(0))]
    }

    private init(name: String, _ place: Place) {
        self.name = name
        parts = [.address(place)]
    }

    /// Returns an upstream's name as part of a variable's: `wiki-2` is `WIKI_2`.
    private static func variablePart(_ name: String) -> String {
        String(name.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }

    /// Adds loopback to `no_proxy`, so that a request for an address of this run goes there and not through `http_proxy`. What
    /// `NO_PROXY` named is kept, as programs read the lower-case variable first.
    static func excludeLoopback(from environment: inout [String: String]) {
        let named = [environment["no_proxy"] ?? environment["NO_PROXY"] ?? "", "127.0.0.1,localhost"]
        environment["no_proxy"] = named.filter { !$0.isEmpty }.joined(separator: ",")
        if environment["NO_PROXY"] != nil { environment["NO_PROXY"] = environment["no_proxy"] }
    }

    /// The places in the value.
    var places: [Place] { parts.compactMap { if case .address(let place) = $0 { place } else { nil } } }

    /// Returns the value, in which `address` gives the address of each place.
    func text(_ address: (Place) -> String) -> String {
        parts.map { part in
            switch part {
            case .address(let place): address(place)
            case .text(let text): text
            }
        }.joined()
    }
}
