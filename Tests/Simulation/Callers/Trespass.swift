// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A request that the proxy must refuse by itself, and the answers that are right.
struct Trespass {
    let name: String
    let request: String
    let statuses: Set<Int>
    let method: String
    /// The runs in which the rule holds.
    let scope: Scope
    /// True if nothing that follows on its connection may be read as a request.
    let endsConnection: Bool

    /// The runs in which a request is refused.
    enum Scope {
        case everywhere
        /// Over TCP: what a browser can reach.
        case tcp
        /// Over a Unix socket: where the kernel names the caller.
        case unix
        /// The runs in which a path below is routed elsewhere.
        case routes
        /// The runs in which a challenge stands before a part of the addresses.
        case places
    }

    static let host = "Host: s0.localhost:8080\r\n"
    /// A request that may stand behind another one.
    static let smuggled = "GET /r/0 HTTP/1.1\r\n\(host)\r\n"

    /// Creates a request without a number: one that reaches a server is noticed there.
    init(
        _ name: String, _ request: String, _ statuses: Set<Int>, _ scope: Scope = .everywhere,
        endsConnection: Bool = false
    ) {
        self.name = name
        self.request = request
        self.statuses = statuses
        self.scope = scope
        self.endsConnection = endsConnection
        method = String(request.prefix { $0 != " " })
    }

    private static let all = UnreadableRequests.all + RefusedRequests.all

    /// Returns one of those that are refused in a simulation of that kind.
    static func any(_ chance: inout Chance, in setting: Setting, of server: SimulatedServer) -> Trespass {
        while true {
            let one = chance.pick(all)
            // A body that breaks off ends a trial of the credential, and others have to wait for the next one.
            if one.method == "POST", server.protection.account.ridesOnRequests, !chance.oneIn(4) { continue }
            switch one.scope {
            case .everywhere: return one
            case .tcp: if !setting.isUnix { return one }
            case .unix: if setting.isUnix { return one }
            case .routes: if setting.hasRoutes { return one }
            case .places: if server.habits.isPartlyOpen { return one }
            }
        }
    }
}
