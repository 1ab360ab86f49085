// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("WebSocket, from a real caller to a real server")
struct WebSocketTests {
    @Test("crosses whole, over plain connections and over TLS, and leaves nothing behind")
    func crosses() async throws {
        try await withBank(startsDaemon: false) { bank in
            let front = try await TLSFront(before: bank.upstream.port)
            let plain = try await WebSocketServer(in: bank.folder)
            let secure = try await WebSocketServer(
                "--certificate", front.certificate, "--key", front.key, in: bank.folder)
            bank.configure {
                $0.upstreams = [
                    "plain: { url: 'http://127.0.0.1:\(plain.port)/' }",
                    """
                    secure: { url: 'https://127.0.0.1:\(secure.port)/', tls: { ca: \(front.certificate) } }
                    """,
                ]
                $0.listeners = """
                    address: 127.0.0.1:${PROXY_PORT}
                    upstream: bank
                    routes: [ { path: /plain/, upstream: plain }, { path: /secure/, upstream: secure } ]
                    """
            }
            let daemon = try await bank.startDaemon()
            let local = "ws://127.0.0.1:\(bank.port)"
            for path in ["/plain/", "/secure/"] {
                #expect(try await WebSocketServer.call(local + path, in: bank.folder) == "same\n")
            }
            // Not sooner: the admin socket's service opens its own descriptors after the daemon is ready.
            let before = daemon.descriptors
            for path in ["/plain/", "/secure/"] {
                let large = try await WebSocketServer.call(
                    local + path, "--connections", "2", "--messages", "8", "--size", "3000000", "--pause", "1",
                    in: bank.folder)
                #expect(large == "same\n")
            }
            // The second worker's multi handle may now exist and keep the descriptors that wake it.
            #expect(await eventually { daemon.descriptors <= before + 4 })
            #expect(!daemon.log.contains("exchange failed"))
            for server in [plain, secure] { await server.stop() }
            await front.stop()
        }
    }

    @Test("gets the challenge on its handshake answered, once for all of its callers")
    func challenged() async throws {
        try await withBank(startsDaemon: false) { bank in
            let server = try await WebSocketServer("--protected", in: bank.folder)
            let front = try await TLSFront(
                before: bank.upstream.port,
                locations: """
                    location /feed/ {
                        proxy_pass http://127.0.0.1:\(server.port); proxy_http_version 1.1;
                        proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
                    }
                    """)
            bank.configure {
                $0.upstreams = [
                    """
                    feed:
                      url: https://localhost:\(front.port)/feed/
                      tls: { ca: \(front.certificate) }
                      mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
                    """
                ]
                $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: feed"
                $0.challenges = [BankConfiguration.pinChallenge.replacing("upstream: bank", with: "upstream: feed")]
            }
            try await bank.startDaemon()
            let local = "ws://127.0.0.1:\(bank.port)/prices"
            let said = try await WebSocketServer.call(local, in: bank.folder)
            let log = try bank.daemon.log
            #expect(said == "same\n", "\(log)")
            #expect(bank.record.registrations == 1)
            #expect(bank.record.tokens.count == 1)
            await server.stop()
            await front.stop()
        }
    }
}
