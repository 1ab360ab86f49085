// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The way in which a resource asks for a login: most as their server does, and some in a way that nobody can answer.
enum ResourceManner {
    /// As its server does.
    case usual
    /// By a scheme that nobody here knows.
    case unknownScheme
    /// By a challenge for another realm.
    case otherRealm
    /// By a challenge beside something that is none.
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

    /// A challenge of a scheme that nobody here knows.
    static var strangeChallenge: ServerAnswer {
        ServerAnswer(401, [("WWW-Authenticate", "Hawk realm=\"elsewhere\"")], body: "who are you")
    }
}
