// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Proxy
import TestSupport
import Testing

@Suite("Paths as Tomcat, nginx, Apache and IIS read them")
struct ServerReadingTests {
    private typealias Route = Router.Route

    /// Configurations with a guarded folder, `/admin/`, and a way that is open to everybody.
    private static let routers = [
        Router(
            routes: [Route(path: "/admin/", users: [7], upstream: "up"), Route(path: "/public/", upstream: "up")],
            fallback: nil),
        Router(
            routes: [Route(path: "/public/", upstream: "up"), Route(path: "/admin/", users: [7], upstream: "up")],
            fallback: nil),
        Router(routes: [Route(path: "/admin/", users: [7], upstream: "up")], fallback: "up"),
        Router(routes: [Route(path: "/admin/", upstream: "admin")], fallback: "up"),
    ]

    /// Returns whether the path went by a way that is not the guarded one.
    private func expectGuarded(_ path: String) -> Bool {
        var isOpen = false
        for (number, router) in Self.routers.enumerated() {
            for user in [7, 8] as [UInt32] {
                let decision = router.decide(host: "", path: path, method: "GET", user: user)
                guard case .found(let destination) = decision else { continue }
                let route = destination.route.map { router.routes[$0] }
                guard route?.path != "/admin/" else { continue }
                isOpen = true
                for server in ServerReading.all where server.serves(Array(path.utf8), below: "/admin/") {
                    Issue.record(
                        "\(server.name) serves \(path) below /admin/; configuration \(number) lets \(user) past")
                }
            }
        }
        return isOpen
    }

    @Test(
        "what any of these servers would serve below a guarded folder never passes by another route",
        arguments: [
            "/public/../admin/do;%2f..%2f..%2fpublic/", "/public/../admin/%2f..%2f..%2fpublic/x",
            "/public/%252e%252e/admin/x", "/public/..;/admin/x", "/public/..;a=b/admin/x", "/public/%2e%2e/admin/x",
            "/public/%2e%2e;/admin/x", "/public/..%3b/admin/x", "/public/..%2fadmin/x", "/public/..%5cadmin/x",
            "/public/..%252fadmin/x", "/public/..%255cadmin/x", "/public//../admin/x", "/public/x//../../admin/x",
            "/public//..//admin/x", "/public/./../admin/x", "/public/.;/../admin/x", "/public/x/..;/..;/admin/x",
            "/public;/../admin/x", "/public/;/../../admin/x", "/public/%2e/../admin/x", "/public/a%2fb/../../admin/x",
            "//admin/x", "/;/admin/x", "/;a/admin/x", "/./admin/x", "/%61dmin/x", "/%2561dmin/x", "/%2fadmin/x",
            "/%5cadmin/x", "/ADMIN/x", "/%41DMIN/x", "/admin;v=1/x", "/admin%3b/x", "/admin%2fx", "/admin%5cx",
            "/admin/x/../../public/", "/admin/%2e%2e/admin/x", "/public/%2e%2e%2f%61dmin/x", "/x/%2e./admin/x",
            "/public/%5c..%5c..%5cadmin/x", "/public/..%c0%afadmin/x", "/public/%u002e%u002e/admin/x",
            "/public/x%00/../../admin/x", "/public/..%25252fadmin/x", "/public/%2e%2e;%2fadmin/x",
        ])
    func table(path: String) {
        _ = expectGuarded(path)
    }

    @Test("nor does it in hundreds of paths that are made randomly of the parts that servers read differently")
    func random() {
        var numbers = SplitMix(state: 20_261_123)
        let parts = [
            "admin", "public", "x", "..", ".", "", "%2e%2e", "%2E.", "..;", "..;v=1", ";", ";a", "%3b", ".%3b",
            "%252e%252e", "ADMIN",
            "%61dmin", "admin;v=1", "%2561dmin", "admin%3f", "admin%23", "..%00", "b%20c",
        ]
        let joints = ["/", "/", "/", "/", "//", "%2f", "%5c", "%252f", "%255c", "/;", "/./"]
        var passed = 0
        for _ in 0..<800 {
            var path = ""
            for _ in 0...Int.random(in: 0..<6, using: &numbers) {
                path +=
                    (path.isEmpty ? "/" : joints[Int.random(in: 0..<joints.count, using: &numbers)])
                    + parts[Int.random(in: 0..<parts.count, using: &numbers)]
            }
            if expectGuarded(path) { passed += 1 }
        }
        #expect((20..<600).contains(passed), "\(passed) passed: too many or too few to tell something")
    }
}
