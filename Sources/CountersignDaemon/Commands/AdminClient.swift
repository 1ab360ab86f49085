// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Settings
internal import System

/// Options with which a command finds the running daemon.
struct AdminOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp("The admin socket. Default: the one in the configuration.", valueName: "path"),
        completion: .file())
    var socket: String?

    /// Returns a client of the admin socket: that of the running daemon, else the one in the configuration.
    ///
    /// Throws if the configuration has no Unix socket. A file that has errors now does not hide the daemon that runs with it.
    func client() throws -> AdminClient {
        if let socket { return AdminClient(path: socket) }
        if let runningSocket { return try AdminClient(path: runningSocket).required(toServe: configuration.config) }
        if let standard = standardClient { return standard }
        let settings = try configuration.load()
        if let path = AdminAddresses.socket(of: settings) {
            return try AdminClient(path: path).required(toServe: configuration.config)
        }
        throw Failure(
            "\(configuration.config): admin.address names no Unix socket; add unix:PATH, which this command needs",
            code: EX_CONFIG)
    }

    /// The admin socket of the daemon that runs with this configuration, if it answers there.
    var ownSocket: String? {
        runningSocket.flatMap { (try? AdminClient(path: $0).required(toServe: configuration.config)) == nil ? nil : $0 }
    }

    /// A client of the daemon at the default socket, if neither a file nor a socket is named, and the default file does
    /// not exist.
    private var standardClient: AdminClient? {
        guard configuration.config == ConfigurationOptions.defaultPath, !FileSystem.allows(configuration.config, F_OK)
        else { return nil }
        let client = AdminClient(path: "\(RuntimeDirectory.locate(environment: Process.environment))/admin.sock")
        return client.canConnect ? client : nil
    }

    /// The admin socket of the only daemon that runs with this configuration.
    var runningSocket: String? {
        let directory = RuntimeDirectory.locate(environment: Process.environment)
        let path = ReloadRecord.path(ofConfiguration: configuration.config)
        let sockets = ReloadRecord.processes(in: directory).compactMap { ReloadRecord.of($0, in: directory) }
            .filter { $0.configuration == path }.compactMap(\.socket)
        return sockets.count == 1 ? sockets[0] : nil
    }
}

/// Options of a command that the running daemon can run in place of this process.
struct DaemonOptions: ParsableArguments {
    @OptionGroup var admin: AdminOptions

    @Flag(name: .long, help: "Run it in this process, as this user, and not by the daemon.")
    var here = false

    var configuration: ConfigurationOptions { admin.configuration }

    /// True if a value may need a prompt. Only the daemon has values that were typed at its start; a command would have
    /// to ask again.
    private var asksAPerson: Bool {
        guard let credentials = ConfigurationFile(path: configuration.config).read().settings?.credentials else {
            return false
        }
        let hasPrompt = credentials.sources.contains { source in
            if case .keyring(_, _, asks: true) = source { true } else { false }
        }
        return hasPrompt || !credentials.asked.isEmpty
    }

    /// Runs the command in the daemon, prints its output, and throws its exit code if it fails.
    ///
    /// Returns false if no daemon runs with this configuration, or this user may not use the socket. The caller then
    /// runs the command itself. `mayAsk` is false for a command that needs no answer to a prompt.
    func hasRun(_ path: String, _ parameters: [(name: String, value: String)?], mayAsk: Bool = true) throws -> Bool {
        guard !here, admin.socket != nil || !mayAsk || !asksAPerson, let socket = admin.socket ?? admin.ownSocket else {
            return false
        }
        let query = FormEncoding.query(parameters.compactMap(\.self))
        var client = AdminClient(path: socket)
        client.timeout = .seconds(330)
        // Only before anything was sent: a command that the daemon may have begun is not run a second time.
        if admin.socket == nil, !client.canConnect { return false }
        let answer = try client.send("POST", query.isEmpty ? path : "\(path)?\(query)")
        guard answer.status == 200, let exit = answer.body["exit"]?.integerValue.flatMap({ Int32(exactly: $0) }) else {
            // A daemon of an earlier version does not know the command.
            if answer.status == 404 { return false }
            throw Failure(answer.body["detail"]?.stringValue ?? "the daemon refused", code: EX_UNAVAILABLE)
        }
        let output = answer.body["output"]?.stringValue ?? ""
        if parameters.contains(where: { $0?.name == "json" }) {
            Process.print(lines: output.harmlessJSON)
        } else {
            for line in output.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
                Terminal.print(String(line))
            }
        }
        Process.printError(lines: answer.body["errors"]?.stringValue ?? "")
        if exit != EX_OK { throw ExitCode(exit) }
        return true
    }
}

/// Blocking client of the daemon's admin socket: one request, one answer.
struct AdminClient {
    /// Answer of the daemon.
    struct Answer {
        let status: Int
        let body: JSONValue
    }

    let path: String
    var timeout = Duration.seconds(30)

    init(path: String) { self.path = path }

    /// Sends one request and returns its answer. Throws a `Failure` if the daemon does not answer.
    func send(_ method: String, _ target: String) throws(Failure) -> Answer {
        let descriptor = try connect()
        defer { close(descriptor) }
        let request = Array("\(method) \(target) HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".utf8)
        guard DescriptorIO.sendAll(request.span, on: descriptor) else { throw unavailable("it closed the connection") }
        guard let answer = parse(DescriptorIO.receiveAll(from: descriptor, atMost: 16_777_216)) else {
            throw unavailable("its answer is not a valid response")
        }
        return answer
    }

    /// Returns the client, or throws if the daemon that answers runs with another file.
    ///
    /// If several daemons of one user have no `admin.address`, the first one has the default socket.
    fileprivate func required(toServe path: String) throws(Failure) -> AdminClient {
        guard canConnect, let served = try send("GET", "/status").body["configuration"]?.stringValue else {
            return self
        }
        guard served == ReloadRecord.path(ofConfiguration: path) else {
            throw Failure(
                "the daemon at \(self.path) runs with \(served), not with \(path): give each daemon an `admin.address` of its "
                    + "own, or name its socket by --socket", code: EX_UNAVAILABLE)
        }
        return self
    }

    /// Returns false if no process listens at the socket. Throws if this user may not connect.
    func isListening() throws(Failure) -> Bool {
        do throws(Failure) {
            close(try connect())
            return true
        } catch {
            if error.code == EX_UNAVAILABLE { return false }
            throw error
        }
    }

    /// True if this user may connect to the daemon, and it listens.
    var canConnect: Bool {
        guard let descriptor = try? connect() else { return false }
        close(descriptor)
        return true
    }

    private func connect() throws(Failure) -> Int32 {
        guard let address = SocketAddress(unixPath: path) else {
            throw Failure("\(path): too long for the path of a Unix socket", code: EX_USAGE)
        }
        do throws(SystemError) {
            let socket = Descriptor(owning: try Sockets.makeStream(AF_UNIX))
            Sockets.setTimeouts(socket.number, receive: timeout)
            try address.connect(socket.number)
            return socket.release()
        } catch {
            if error.code == EACCES {
                throw Failure("\(path): this user may not connect to the daemon; try sudo", code: EX_NOPERM)
            }
            throw unavailable(error.description)
        }
    }

    private func parse(_ answer: [UInt8]) -> Answer? {
        let blank = Array("\r\n\r\n".utf8)
        guard let end = answer.indices.first(where: { answer[$0...].starts(with: blank) }),
            let status = String(decoding: answer.prefix(12), as: UTF8.self).split(separator: " ").last.flatMap({
                Int($0)
            })
        else { return nil }
        let body = Array(answer[(end + 4)...])
        let value = JSONValue(parsing: body, within: .local)
        return Answer(status: status, body: value ?? .string(String(decoding: body, as: UTF8.self)))
    }

    private func unavailable(_ reason: String) -> Failure {
        Failure("\(path): the daemon does not answer (\(reason)); is it running?", code: EX_UNAVAILABLE)
    }
}
