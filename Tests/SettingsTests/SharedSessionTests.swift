// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SharedSessions
import Testing

@testable import Settings

@Suite("Shared sessions")
struct SharedSessionTests {
    @Test(
        "each form of a session store's address is read",
        arguments: [
            ("redis+unix:///run/redis/redis.sock", RedisStorePlan.Endpoint.socket("/run/redis/redis.sock"), 0),
            ("\"redis+unix:///r.sock?db=3\"", .socket("/r.sock"), 3),
            ("redis://localhost", .host("localhost", port: 6379, isSecure: false), 0),
            ("redis://127.0.0.1:80/", .host("127.0.0.1", port: 80, isSecure: false), 0),
            ("\"REDISS://Sessions.Example.:7000/15\"", .host("sessions.example", port: 7000, isSecure: true), 15),
            ("\"rediss://[2001:DB8::1]/1\"", .host("2001:db8::1", port: 6379, isSecure: true), 1),
            ("\"rediss://[::1]:443\"", .host("::1", port: 443, isSecure: true), 0),
        ])
    func stores(text: String, store: RedisStorePlan.Endpoint, database: Int) {
        let text = sessions("store: \(text), key: shared")
        #expect(problems(text) == [])
        var plan = RedisStorePlan(endpoint: store)
        plan.database = database
        #expect(parsed(text)?.sessions == SharedSessionSettings(store: plan, key: "shared"))
    }

    @Test("the keys of sessions are read as they are written")
    func everythingElse() throws {
        let keys = "store: redis://localhost, prefix: blue, key: k, credential: c, lease: 10m, spread: 1ms"
        let settings = try #require(parsed(sessions(keys))?.sessions)
        #expect(settings.store.prefix == "blue" && settings.key == "k" && settings.store.credential == "c")
        #expect(settings.times.lease == .seconds(600) && settings.times.alone == .milliseconds(1))
        #expect(parsed(frame())?.sessions == nil)
    }

    @Test(
        "each problem of sessions is reported with its position and a remedy",
        arguments: [
            ("key: k", "f:4:11: sessions.store: is missing"),
            ("store: redis://localhost", "f:4:11: sessions.key: is missing"),
            (
                "store: memcached://h:1, key: k",
                "f:4:20: sessions.store: is not a session store (use redis+unix:///PATH, redis://HOST:PORT/DATABASE or "
                    + "rediss://HOST:PORT/DATABASE)"
            ),
            (
                "store: \"rediss://ann:sesame@h:1\", key: k",
                "f:4:20: sessions.store: an address must not contain a user name or a password; keep them in a credential, as "
                    + "`username` and `password`, and name it with `sessions.credential`"
            ),
            (
                "store: \"redis+unix://run/redis.sock\", key: k",
                "f:4:20: sessions.store: is not the address of a Unix socket (use redis+unix:// and an absolute path of at "
                    + "most 107 bytes)"
            ),
            (
                "store: \"redis+unix:///r?x=1\", key: k",
                "f:4:20: sessions.store: has an unknown query: only ?db=NUMBER is allowed"
            ),
            (
                "store: redis://localhost/-1, key: k",
                "f:4:20: sessions.store: \"-1\" is not a database number (0 to 65535)"
            ),
            (
                "store: \"redis://localhost/0?x\", key: k",
                "f:4:20: sessions.store: \"0?x\" is not a database number (0 to 65535)"
            ),
            (
                "store: \"redis://:6379\", key: k",
                "f:4:20: sessions.store: is not the address of a session store (use redis://HOST:PORT/DATABASE; port and "
                    + "database are optional)"
            ),
            ("store: redis://localhost, key: k, lease: 4s", "f:4:54: sessions.lease: must be from 5s to 10m"),
            ("store: redis://localhost, key: k, spread: 6m", "f:4:55: sessions.spread: must be from 1ms to 5m"),
            (
                "store: redis://localhost, key: k, password: sesame",
                "f:4:47: sessions.password: unknown key; secrets do not belong in this file: keep it in a credential source, and "
                    + "name that credential with `credential:`"
            ),
        ])
    func problem(keys: String, problem: String) {
        let found = problems(sessions(keys))
        #expect(found == [problem])
        #expect(!found.joined().contains("sesame"))
    }

    @Test("a session store over plaintext to another machine, and unused TLS settings, are warned about")
    func warnings() {
        #expect(
            problems(sessions("store: redis://sessions.example, key: k, tls: { minimum: 1.3 }")) == [
                "f:4:20: sessions.store: warning: the session store's password and the commands go to another machine in plaintext "
                    + "(sessions are sealed): use rediss://, or a Unix socket",
                "f:4:59: sessions.tls: warning: the session store is reached without TLS: only rediss:// uses it",
            ])
        #expect(problems(sessions("store: rediss://sessions.example, key: k, tls: { minimum: 1.3 }")) == [])
    }

    @Test("a credential that only shared sessions use may be asked for")
    func asked() {
        let asked = "\ncredentials: { ask: { k: key, c: password } }"
        #expect(problems(sessions("store: redis://localhost, key: k, credential: c") + asked) == [])
        #expect(problems(sessions("store: redis://localhost, key: k") + asked).count == 1)
    }

    private func sessions(_ keys: String) -> String { frame("sessions: { \(keys) }") }
}
