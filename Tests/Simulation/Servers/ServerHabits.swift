// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Freedoms of a server that a proxy has to bear.
struct ServerHabits {
    /// True if it does not answer before it has the body.
    let ignoresExpectations: Bool
    /// True if it may demand a login before it has the body.
    let answersEarly: Bool
    /// True if it ends connections at rest.
    let endsRests: Bool
    /// True if it sends 408 then (RFC 9110 §15.5.9).
    let tellsEnd: Bool
    /// True if callers are described in `X-Forwarded-*`.
    let knowsCallers: Bool
    /// True if its challenge applies to some of its addresses only.
    let isPartlyOpen: Bool

    /// Creates the habits of one server.
    init(_ chance: inout Chance, of protection: any Protection) {
        ignoresExpectations = chance.oneIn(3)
        answersEarly = chance.oneIn(2)
        endsRests = chance.oneIn(3)
        tellsEnd = chance.oneIn(2)
        knowsCallers = chance.oneIn(2)
        // A login for the whole upstream applies to all addresses.
        isPartlyOpen = chance.oneIn(3) && !protection.isEverywhere && protection.upstreamConfiguration.isEmpty
    }

    /// The part of an upstream's configuration that they need.
    var terms: String { knowsCallers ? ", forwarded: x-forwarded" : "" }

    /// Returns the place of a challenge in the configuration.
    func place(of server: SimulatedServer) -> String {
        guard isPartlyOpen else { return "upstream: \(server.name)" }
        let base = server.protection.base.dropLast()
        // Addresses that show how a path is read have no prefix.
        let prefixes = Set(["", server.protection.prefix]).sorted()
        let folders = prefixes.flatMap { prefix in
            ["r", "forbidden", "fickle", "guest", "rest"].map { "\(base)\(prefix)/\($0)/*" }
        }
        let paths = (folders + ["\(base)/privately/*", "/base/whoami"]).map { "\"\(server.authority)\($0)\"" }
        return "at: [\(paths.joined(separator: ", "))]"
    }
}

/// The way in which a resource asks for a login: most as their server does, some in a way that cannot be answered.
enum ResourceManner {
    /// As its server does.
    case usual
    /// By a scheme that is unknown here.
    case unknownScheme
    /// By a challenge for another realm.
    case otherRealm
    /// By a challenge beside an invalid one.
    case unreadable

    /// Creates the manner of the resource of an order: those that many ask for are as usual.
    init(_ order: Order, in simulation: Simulation) {
        self.init(SharedResources.order(in: order.target) == nil ? order.number : 0, in: simulation)
    }

    private init(_ number: Int, in simulation: Simulation) {
        switch simulation.weather.hasStrangers ? number % 16 : 0 {
        case 3: self = .unknownScheme
        case 7: self = .unreadable
        case 11: self = .otherRealm
        default: self = .usual
        }
    }

    /// Creates the manner of the resource that a request is for.
    init(_ request: ServerRequest, in simulation: Simulation) {
        self.init(request.path.split(separator: "/").last.flatMap { Int($0) } ?? 0, in: simulation)
    }

    /// A challenge of a scheme that is unknown here.
    static var strangeChallenge: ServerAnswer {
        ServerAnswer(401, [("WWW-Authenticate", "Hawk realm=\"elsewhere\"")], body: "who are you")
    }
}

/// An address at which another protocol is spoken (RFC 9110 §7.8), and requests for it.
enum SwitchedProtocol {
    /// The beginning of its paths.
    static let path = "/base/switch/"

    /// Returns the answer to a request: a demand, or 101 with the cookies that the protection renews.
    static func answer(to request: ServerRequest, of protection: some Protection) -> ServerAnswer {
        switch protection.examine(request) {
        case .demand(let answer): return answer
        case .pass(let attempt):
            // A login examines the address of the request.
            guard request.value("upgrade") != nil else {
                return ServerAnswer(200, body: "looked at").judging(attempt)
            }
            let fields: [(name: String, value: String)] = [("Connection", "Upgrade"), ("Upgrade", "echo")]
            var answer = ServerAnswer(101, fields + protection.renewals(for: request)).judging(attempt)
            answer.closes = true
            return answer
        }
    }

    /// Returns a caller's request for it at the server of that name.
    static func visit(at name: String) -> Visit {
        // No cookie of the session reaches the caller, whatever happens to the login.
        Visit(
            "another protocol", at: .common,
            "GET /switch/0 HTTP/1.1\r\nHost: \(name).localhost:8080\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
            [200, 401, 403, 429, 500, 502, 503, 504])
    }
}

/// The fields that servers add to the answer of an authenticated request, for the authenticated client: the daemon.
enum Courtesies {
    /// Adds some of it, if the request carries credentials.
    static func add(to answer: inout ServerAnswer, for request: ServerRequest, using chance: inout Chance) {
        let mark = Simulation.secretMark
        let key = request.value("x-api-key").flatMap { $0.hasPrefix(mark) ? $0 : nil }
        guard let value = request.value("authorization") ?? key else { return }
        // In Digest, the proof is examined (RFC 7616 §3.5).
        if !value.hasPrefix("Digest "), chance.oneIn(4) {
            answer.fields.append(("Authentication-Info", "rspauth=\"\(mark)proof\""))
        }
        if chance.oneIn(4) { answer.fields.append(("WWW-Authenticate", "Basic realm=\"\(mark)realm\"")) }
    }
}
