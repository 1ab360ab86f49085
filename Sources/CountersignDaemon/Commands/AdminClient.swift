// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Glibc
internal import Settings
internal import System

/// Options by which a command finds the running daemon.
struct AdminOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp("The admin socket. Default: the one in the configuration.", valueName: "path"),
        completion: .file())
    var socket: String?

    /// Returns a client of the admin socket. Throws if the configuration has no Unix socket.
    func client() throws -> AdminClient {
        if let socket { return AdminClient(path: socket) }
        let settings = try configuration.load()
        for address in AdminAddresses.of(settings) {
            if case .unix(let path, _) = address { return AdminClient(path: path) }
        }
        throw Failure(
            "\(configuration.config): admin.address names no Unix socket; add unix:PATH, which this command needs",
            code: EX_CONFIG)
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
    /// Timeout of the answer.
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

    private func connect() throws(Failure) -> Int32 {
        guard let address = SocketAddress(unixPath: path) else {
            throw Failure("\(path): too long for the path of a Unix socket", code: EX_USAGE)
        }
        do throws(SystemError) {
            let socket = Descriptor(owning: try Sockets.makeStream(AF_UNIX))
            Sockets.setTimeouts(socket.number, receive: min(timeout, .seconds(30)))
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
