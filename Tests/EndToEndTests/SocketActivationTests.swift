// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Testing

@Suite("A socket that systemd holds")
struct SocketActivationTests {
    private static var configuration: BankConfiguration {
        var configuration = BankConfiguration()
        configuration.listeners = "address: systemd:http\nupstream: bank"
        return configuration
    }

    @Test("is served under its name, from the very request that started the daemon")
    func activated() async throws {
        try await withBank(Self.configuration, startsDaemon: false) { bank in
            try await bank.startDaemon(before: bank.activation(name: "http"))
            let answer = try await bank.curlWhenListening("/balance")
            #expect(answer.status == 200)
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)
            #expect(await bank.stopDaemon() == 0)
        }
    }

    @Test("of another name ends the start, and both names are told")
    func wrongName() async throws {
        try await withBank(Self.configuration, startsDaemon: false) { bank in
            let daemon = try await bank.startDaemon(before: bank.activation(name: "other"))
            _ = try await bank.curlWhenListening("/balance")
            #expect(await daemon.child.waitForExit() == 78)
            #expect(daemon.log.contains("http"))
            #expect(daemon.log.contains("other"))
            await bank.stopDaemonThatFailed()
        }
    }
}

extension Bank {
    /// What stands before the program's name, so that it is started by the first connection.
    fileprivate func activation(name: String) -> [String] {
        let names = environment.keys.sorted() + baseEnvironment(folder).keys.sorted()
        return ["/usr/bin/systemd-socket-activate", "--listen=127.0.0.1:\(port)", "--fdname=\(name)"]
            + names.map { "--setenv=\($0)" }
    }

    /// Requests a path as soon as somebody listens, which no log tells.
    fileprivate func curlWhenListening(_ path: String) async throws -> Curl {
        var answer = try await curl(path)
        // 7: the connection was refused.
        _ = try await eventually {
            if answer.exit == 7 { answer = try await curl(path) }
            return answer.exit != 7
        }
        return answer
    }

    /// Forgets a daemon that has ended by itself with a code of its own.
    fileprivate func stopDaemonThatFailed() async { _ = await stopDaemon() }
}
