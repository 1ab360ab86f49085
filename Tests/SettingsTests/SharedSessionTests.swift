// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Settings

@Suite("Sessions of a fleet")
struct SharedSessionTests {
    @Test(
        "each form of address is understood",
        arguments: [
            ("redis+unix:///run/redis/redis.sock", SharedSessionSettings.Store.socket("/run/redis/redis.sock"), 0),
            ("\"redis+unix:///r.sock?db=3\"", .socket("/r.sock"), 3),
            ("redis://localhost", .host("localhost", port: 6379, isSecure: false), 0),
            ("redis://127.0.0.1:80/", .host("127.0.0.1", port: 80, isSecure: false), 0),
            ("\"REDISS://Sessions.Example.:7000/15\"", .host("sessions.example", port: 7000, isSecure: true), 15),
            ("\"rediss://[2001:DB8::1]/1\"", .host("2001:db8::1", port: 6379, isSecure: true), 1),
            ("\"rediss://[::1]:443\"", .host("::1", port: 443, isSecure: true), 0),
        ])
    func stores(text: String, store: SharedSessionSettings.Store, database: Int) {
        let text = sessions("store: \(text), key: fleet")
        #expect(problems(text) == [])
        #expect(parsed(text)?.sessions == SharedSessionSettings(store: store, database: database, key: "fleet"))
    }

    @Test("all else is taken as it is written")
    func everythingElse() throws {
        let keys = "store: redis://localhost, prefix: blue, key: k, credential: c, lease: 10m, spread: 1ms"
        let settings = try #require(parsed(sessions(keys))?.sessions)
        #expect(settings.prefix == "blue" && settings.key == "k" && settings.credential == "c")
        #expect(settings.lease == .seconds(600) && settings.spread == .milliseconds(1))
        #expect(parsed(frame())?.sessions == nil)
    }

    @Test(
        "what is wrong is told with its place, and what to do",
        arguments: [
            ("key: k", "f:4:11: sessions.store: is missing"),
            ("store: redis://localhost", "f:4:11: sessions.key: is missing"),
            (
                "store: memcached://h:1, key: k",
                "f:4:20: sessions.store: is no session engine: redis+unix:///PATH, redis://HOST:PORT/DATABASE or "
                    + "rediss://HOST:PORT/DATABASE"
            ),
            (
                "store: \"rediss://ann:sesame@h:1\", key: k",
                "f:4:20: sessions.store: an address holds no user name and password; keep them in a credential, as `username` and "
                    + "`password`, and name that by `sessions.credential`"
            ),
            (
                "store: \"redis+unix://run/redis.sock\", key: k",
                "f:4:20: sessions.store: names no socket: redis+unix:// and an absolute path of at most 107 bytes, as in "
                    + "redis+unix:///run/redis/redis.sock"
            ),
            ("store: \"redis+unix:///r?x=1\", key: k", "f:4:20: sessions.store: has a query other than ?db=NUMBER"),
            (
                "store: redis://localhost/-1, key: k",
                "f:4:20: sessions.store: \"-1\" is no number of a database: 0 to 65535"
            ),
            (
                "store: \"redis://localhost/0?x\", key: k",
                "f:4:20: sessions.store: \"0?x\" is no number of a database: 0 to 65535"
            ),
            (
                "store: \"redis://:6379\", key: k",
                "f:4:20: sessions.store: is no address of a host, and perhaps a port and the number of a database: "
                    + "redis://HOST:PORT/DATABASE"
            ),
            ("store: redis://localhost, key: k, lease: 4s", "f:4:54: sessions.lease: must be from 5s to 10m"),
            ("store: redis://localhost, key: k, spread: 6m", "f:4:55: sessions.spread: must be at most 5m"),
            (
                "store: redis://localhost, key: k, password: sesame",
                "f:4:47: sessions.password: unknown key; secrets do not stand in this file: keep it in a credential source and "
                    + "name that by `credential:`"
            ),
        ])
    func problem(keys: String, problem: String) {
        let found = problems(sessions(keys))
        #expect(found == [problem])
        #expect(!found.joined().contains("sesame"))
    }

    @Test("what another machine would read is warned of, and TLS that is not spoken")
    func warnings() {
        #expect(
            problems(sessions("store: redis://sessions.example, key: k, tls: { minimum: 1.3 }")) == [
                "f:4:20: sessions.store: warning: the engine's password and what it is asked go to another machine in the clear "
                    + "(sessions are sealed): use rediss://, or a Unix socket",
                "f:4:59: sessions.tls: warning: the engine is spoken to without TLS: only rediss:// has it",
            ])
        #expect(problems(sessions("store: rediss://sessions.example, key: k, tls: { minimum: 1.3 }")) == [])
    }

    @Test("a credential that only sessions use may be asked for")
    func asked() {
        let asked = "\ncredentials: { ask: { k: key, c: password } }"
        #expect(problems(sessions("store: redis://localhost, key: k, credential: c") + asked) == [])
        #expect(problems(sessions("store: redis://localhost, key: k") + asked).count == 1)
    }

    private func sessions(_ keys: String) -> String { frame("sessions: { \(keys) }") }
}
