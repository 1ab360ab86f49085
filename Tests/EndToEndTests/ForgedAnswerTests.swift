// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
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

    @Test("print nothing that controls the terminal", arguments: [200, 400])
    func harmless(status: Int) async throws {
        let folder = try Folder()
        let path = folder.path(of: "forged.sock")
        let server = try ForgedSocket(path, answer: Self.answer(status: status, exit: 0))
        defer { server.stop() }
        let file = folder.write(
            """
            listeners: [{ address: "127.0.0.1:1", upstream: bank }]
            upstreams: { bank: { url: "http://127.0.0.1:2/" } }
            admin: { address: "unix:\(path)" }

            """, to: "countersign.yaml")
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

/// A Unix socket that gives every request the same answer.
private final class ForgedSocket: Sendable {
    private let descriptor: Int32
    private let serving: Task<Void, Never>

    init(_ path: String, answer: String) throws {
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0, listen(descriptor, 16) == 0 else {
            throw ChildError(description: "no socket at \(path): error \(errno)")
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
