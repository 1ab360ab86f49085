// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Freedoms of a server that a proxy has to bear.
struct ServerHabits {
    /// True if it says nothing before it has the body.
    let ignoresExpectations: Bool
    /// True if it may demand a login before it has the body.
    let answersEarly: Bool
    /// True if it ends connections at rest.
    let endsRests: Bool
    /// True if it says 408 then (RFC 9110 §15.5.9).
    let tellsEnd: Bool
    /// True if it is told of callers in `X-Forwarded-*`.
    let knowsCallers: Bool
    /// True if its challenge stands before a part of its addresses only.
    let isPartlyOpen: Bool

    /// Creates the habits of one server.
    init(_ chance: inout Chance, of protection: any Protection) {
        ignoresExpectations = chance.oneIn(3)
        answersEarly = chance.oneIn(2)
        endsRests = chance.oneIn(3)
        tellsEnd = chance.oneIn(2)
        knowsCallers = chance.oneIn(2)
        // Where the login is the whole upstream's, it stands before all.
        isPartlyOpen = chance.oneIn(3) && !protection.isEverywhere && protection.upstreamConfiguration.isEmpty
    }

    /// The part of an upstream's configuration that they need.
    var terms: String { knowsCallers ? ", forwarded: x-forwarded" : "" }

    /// Returns the place of a challenge in the configuration.
    func place(of server: SimulatedServer) -> String {
        guard isPartlyOpen else { return "upstream: \(server.name)" }
        let base = server.protection.base.dropLast()
        // What shows how a path is read stands without the prefix.
        let prefixes = Set(["", server.protection.prefix]).sorted()
        let folders = prefixes.flatMap { prefix in
            ["r", "forbidden", "fickle", "guest", "rest"].map { "\(base)\(prefix)/\($0)/*" }
        }
        let paths = (folders + ["\(base)/privately/*", "/base/whoami"]).map { "\"\(server.authority)\($0)\"" }
        return "at: [\(paths.joined(separator: ", "))]"
    }
}
