// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import TestSupport
import Testing

@Suite("Addresses of the listener in WebDAV requests as the upstream gets them")
struct ForwardMappingTests {
    /// Returns the field `name` that reaches the upstream, or the status of the refusal.
    private func sent(
        _ name: String, _ value: String, method: String = "MOVE", url: String = "/", path: String = "/a",
        router: Router = Router(fallback: "bank"), forwarding: ForwardingPolicy = ForwardingPolicy(),
        host: String = "localhost"
    ) throws -> (value: String, port: UInt16) {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(
            .bank(port: upstream.port, path: url, forwarding: forwarding), router: router)
        let caller = try proxy.connect()
        let port = proxy.port
        let own = "\(host):\(port)"
        try caller.send(
            "\(method) \(path) HTTP/1.1\r\nHost: \(own)\r\n\(name): \(value.replacing("HERE", with: own))\r\n\r\n")
        guard !caller.hasNewsSoon(proxy) else { return (String(try caller.head().prefix(12)), upstream.port) }
        let server = try upstream.accept()
        let lines = try server.head().split(separator: "\r\n")
        try server.send(answer("201 Created"))
        _ = try caller.message()
        let line = lines.first { $0.hasPrefix("\(name): ") }.map { String($0.dropFirst(name.count + 2)) } ?? ""
        return (
            line.replacing("127.0.0.1:\(upstream.port)", with: "UP").replacing(own, with: "HERE"), upstream.port
        )
    }

    @Test(
        "Destination names the upstream",
        arguments: [
            ("http://HERE/b%20c", "http://UP/b%20c"), ("HTTP://HERE/b", "http://UP/b"),
            ("https://HERE/b", "http://UP/b"),
            ("http://HERE", "http://UP/"), ("/b", "/b"), ("http://other.example/b", "http://other.example/b"),
            ("http://u@HERE/b", "http://u@HERE/b"), ("x", "x"), ("http://HERE/[b]", "http://UP/[b]"),
        ])
    func destination(said: String, wanted: String) throws {
        for method in ["MOVE", "COPY"] { #expect(try sent("Destination", said, method: method).value == wanted) }
        #expect(try sent("destination", said).value == wanted)
    }

    @Test("the path of url is added, and what strip-prefix takes is taken")
    func paths() throws {
        #expect(try sent("Destination", "http://HERE/b", url: "/dav/").value == "http://UP/dav/b")
        #expect(try sent("Destination", "/b", url: "/dav/").value == "/dav/b")
        let router = Router(routes: [.init(path: "/p/", upstream: "bank", stripsPrefix: true)], fallback: nil)
        #expect(
            try sent("Destination", "http://HERE/p/b", url: "/dav/", path: "/p/a", router: router).value
                == "http://UP/dav/b")
    }

    @Test(
        "a Destination that another route takes, or that servers read in two ways, is refused",
        arguments: [
            "http://HERE/other/b", "http://HERE/q", "/other/b", "http://HERE/p/..%2fother/b", "http://HERE/p/%2e%2e/q",
        ])
    func otherRoutes(said: String) throws {
        let router = Router(
            routes: [.init(path: "/other/", upstream: "other"), .init(path: "/p/", upstream: "bank")], fallback: nil)
        #expect(try sent("Destination", said, path: "/p/a", router: router).value == "HTTP/1.1 400")
        #expect(try sent("If", "<\(said)> (<urn:uuid:1>)", path: "/p/a", router: router).value == "HTTP/1.1 400")
    }

    @Test("a server that gets the caller's Host gets it in Destination, too")
    func passedHost() throws {
        let policy = ForwardingPolicy(host: .pass)
        #expect(try sent("Destination", "http://HERE/b", url: "/dav/", forwarding: policy).value == "http://HERE/dav/b")
    }

    @Test(
        "the tags of If name the upstream, and its lists stay as they are",
        arguments: [
            ("<http://HERE/a> (<urn:uuid:1> [\"x\"])", "<http://UP/a> (<urn:uuid:1> [\"x\"])"),
            ("(<http://HERE/token>)", "(<http://HERE/token>)"),
            (
                "<http://HERE/a> (Not <http://HERE/t>) ([W/\")<http://HERE/x>\"]) </b> (<DAV:no-lock>) <http://HERE/c>(<x>)",
                "<http://UP/a> (Not <http://HERE/t>) ([W/\")<http://HERE/x>\"]) </b> (<DAV:no-lock>) <http://UP/c>(<x>)"
            ),
            ("<http://other.example/a> (<x>)", "<http://other.example/a> (<x>)"), ("<http://HERE/a", "<http://HERE/a"),
            ("<> (<x>)", "<> (<x>)"),
        ])
    func condition(said: String, wanted: String) throws {
        for method in ["PUT", "LOCK", "DELETE"] { #expect(try sent("If", said, method: method).value == wanted) }
    }
}

extension Peer {
    /// Returns true if the proxy answers without the upstream.
    fileprivate func hasNewsSoon(_ proxy: TestProxy) -> Bool {
        proxy.settle()
        return hasNews
    }
}
