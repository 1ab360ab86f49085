// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import TestSupport
import Testing

@Suite("Commands at an admin socket that another process has forged", .serialized)
struct ForgedAnswerTests {
    /// Terminal sequences with C0 and C1, DEL, and characters that change the direction of text.
    private static let evil = #""owned\u001b]0;title\u0007\u001b[2J\u009b31m\u007f\u202e\u2066\u200f\r""#

    private static func answer(status: Int, exit: Int) -> String {
        let body = """
            {"exit":\(exit),"output":"OUT\\n","errors":EVIL,"detail":EVIL,"title":EVIL,"status":EVIL,"version":EVIL,
            "configuration":EVIL,"reload":{"refusal":EVIL},"listeners":[EVIL],"reasons":[EVIL],"unwritten_state":[EVIL],
            "outages":{EVIL:{"since":1,"last":2,"detail":EVIL,"code":EVIL}},"session_store":{"state":EVIL,"detail":EVIL},
            "upstreams":{EVIL:[{"challenge":EVIL,"asks":[EVIL],"state":EVIL,"code":EVIL,"detail":EVIL,"credential":EVIL}]},
            "latches":[{"challenge":EVIL,"detail":EVIL,"source":EVIL}]}
            """.replacing("\"OUT\\n\"", with: evil.dropLast() + "\\n\"").replacing("EVIL", with: evil)
        return "HTTP/1.0 \(status) X\r\nContent-Type: application/json\r\n\r\n\(body)"
    }

    /// Writes a configuration with the admin socket `path`.
    private func configuration(_ path: String, in folder: Folder) -> String {
        folder.write(
            """
            listeners: [{ address: "127.0.0.1:1", upstream: bank }]
            upstreams: { bank: { url: "http://127.0.0.1:2/" } }
            admin: { address: "unix:\(path)" }

            """, to: "countersign.yaml")
    }

    @Test("print nothing that controls the terminal", arguments: [200, 400])
    func harmless(status: Int) async throws {
        let folder = try Folder()
        let path = folder.path(of: "forged.sock")
        let server = try ForgedSocket(path, answer: Self.answer(status: status, exit: 0))
        defer { server.stop() }
        let file = configuration(path, in: folder)
        let commands = [
            ["status"], ["status", "--json"], ["sessions"], ["sessions", "--json"], ["sessions", "drop", "nobody"],
            ["unlatch", "nobody"], ["wait", "nobody"], ["doctor"], ["doctor", "--json"], ["doctor", "--here"],
            ["login"], ["login", "--json"],
        ]
        var shown = 0
        for command in commands {
            let run = try await Command.run(
                [Binary.path] + command + ["--socket", path, "--config", file], in: folder)
            shown += try judge(run, command)
        }
        shown += try judge(
            try await Command.run(
                [Binary.path, "explain", "http://127.0.0.1:1/", "--config", file], in: folder), ["explain"])
        // The answers have reached the commands.
        #expect(shown >= 8)
        let report = folder.path(of: "report")
        var run = try await Command.run([Binary.path, "bugreport", "--config", file, "--output", report], in: folder)
        run.output += folder.text(of: "report")
        #expect(try judge(run, ["bugreport"]) == 1)
    }

    @Test("`reload` prints nothing that controls the terminal, whatever the daemon's record says")
    func reload() async throws {
        let folder = try Folder()
        let file = configuration(folder.path(of: "none.sock"), in: folder)
        let daemon = try await Child.start(
            Child.Start(
                arguments: ["/bin/sh", "-c", "trap '' HUP; echo; exec sleep 600"], environment: [:],
                folder: folder.path,
                output: folder.path(of: "daemon"), errors: folder.path(of: "daemon")))
        #expect(await eventually { !folder.bytes(of: "daemon").isEmpty })
        folder.makeFolder("run")
        let record = "run/reload.\(daemon.pid)"
        folder.write("\(file)\n0\n", to: record)
        async let command = Command.run([Binary.path, "reload", "--config", file], in: folder)
        let writing = Task {
            for count in 1... {
                // As the daemon replaces it: the command sees a whole record.
                folder.write("\(file)\n\(count)\nowned\u{1B}]0;t\u{07}\u{9B}31m\u{202E}\n", to: "next")
                unsafe rename(folder.path(of: "next"), folder.path(of: record))
                if Task.isCancelled { break }
                await Task.yield()
            }
        }
        let run = try await command
        writing.cancel()
        _ = await writing.value
        #expect(run.exit == 78)
        #expect(try judge(run, ["reload"]) == 1)
        await daemon.end()
    }

    @Test("`learn` prints nothing that controls the terminal, whatever the server says, also at a terminal")
    func learn() async throws {
        let folder = try Folder()
        let port = Ports.next()
        let server = try ForgedSocket(
            port: port,
            answer: """
                HTTP/1.0 401 owned\u{202E}\r
                WWW-Authenticate: Basic realm="owned\u{9B}31m\u{202E}\u{2066}"\r
                Content-Type: text/html\r
                \r
                <title>owned\u{1B}[2J</title>
                """)
        defer { server.stop() }
        let command = [Binary.path, "learn", "http://127.0.0.1:\(port)/owned"]
        let environment = ["COUNTERSIGN_UPSTREAM__USERNAME": "ann", "COUNTERSIGN_UPSTREAM__PASSWORD": "demo"]
        #expect(try judge(try await Command.run(command, environment: environment, in: folder), ["learn"]) == 1)
        var run = try await Command.run(
            ["/usr/bin/script", "-qec", command.joined(separator: " "), "/dev/null"], environment: environment,
            in: folder)
        // The terminal adds these.
        run.output.unicodeScalars.removeAll { $0 == "\r" }
        #expect(run.output.contains("[y/N]"))
        #expect(try judge(run, ["learn", "at a terminal"]) == 1)
    }

    @Test("`keyring get` shows a value at a terminal without what controls it, and writes all of it elsewhere")
    func keyring() async throws {
        let folder = try Folder()
        let environment = ["COUNTERSIGN_KEYRING_PASSPHRASE": "correct horse"]
        let path = folder.path(of: "keyring")
        let value = "owned\u{1B}[2J\u{9B}31m\u{202E}"
        for (words, input) in [(["init"], ""), (["set", "ann", "password"], value)] {
            let run = try await Command.run(
                [Binary.path, "keyring"] + words + ["--keyring", path], environment: environment,
                input: Array(input.utf8), in: folder)
            #expect(run.exit == 0, "\(run)")
        }
        let command = [Binary.path, "keyring", "get", "ann", "password", "--keyring", path]
        #expect(try await Command.run(command, environment: environment, in: folder).output == value)
        var run = try await Command.run(
            ["/usr/bin/script", "-qec", command.joined(separator: " "), "/dev/null"], environment: environment,
            in: folder)
        run.output.unicodeScalars.removeAll { $0 == "\r" }
        #expect(try judge(run, ["keyring", "get"]) == 1)
    }

    /// Expects no harmful character, and returns 1 if the forged answer was shown.
    private func judge(_ run: Command, _ command: [String]) throws -> Int {
        let text = run.output + run.errors
        let harmful = text.unicodeScalars.filter {
            guard $0 != "\n" else { return false }
            return [.control, .format].contains($0.properties.generalCategory)
        }
        #expect(harmful.isEmpty, "\(command): \(harmful.map(\.value))")
        return text.contains("owned") ? 1 : 0
    }
}

/// A socket that gives every request the same answer.
private final class ForgedSocket: Sendable {
    private let descriptor: Int32
    private let serving: Task<Void, Never>

    private static let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)

    /// Listens at a TCP port of this machine.
    convenience init(port: UInt16, answer: String) throws {
        let descriptor = socket(AF_INET, Self.type, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try self.init(descriptor, isBound: bound == 0, "port \(port)", answer)
    }

    /// Listens at a path.
    convenience init(_ path: String, answer: String) throws {
        let descriptor = socket(AF_UNIX, Self.type, 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try self.init(descriptor, isBound: bound == 0, path, answer)
    }

    private init(_ descriptor: Int32, isBound: Bool, _ place: String, _ answer: String) throws {
        guard isBound, listen(descriptor, 16) == 0 else {
            throw ChildError(description: "no socket at \(place): error \(errno)")
        }
        self.descriptor = descriptor
        serving = Task.detached {
            let answer = Array(answer.utf8)
            while !Task.isCancelled {
                var connection: Int32 = -1
                _ = await eventually {
                    connection = accept(descriptor, nil, nil)
                    return connection >= 0 || Task.isCancelled
                }
                guard connection >= 0 else { continue }
                var request = [UInt8](repeating: 0, count: 8192)
                if unsafe recv(connection, &request, request.count, 0) > 0 {
                    _ = unsafe send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
                }
                close(connection)
            }
        }
    }

    deinit { close(descriptor) }

    func stop() { serving.cancel() }
}
