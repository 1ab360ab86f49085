// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Makes the servers of a simulation.
struct ServerMaker {
    private unowned let simulation: Simulation
    /// The servers of sign-ons, which no caller can reach.
    private(set) var providers: [SimulatedServer] = []
    /// The kind of all servers, in half of the runs.
    private let focus: Kind?
    /// The kind that is asked for.
    private let asked: Kind?

    /// A kind of server, by the protection of its resources.
    enum Kind: String, CaseIterable {
        case application, basic, check, checkWithCodes, composite, digest, double, form, formWithCodes, key,
            lockingCheck
        case mobileFirst, offer, portal, refresh, registry, sessionID, signed, signOn, split, token, visitor
    }

    /// Each kind as often as it is drawn: those with more to go wrong are met more often.
    private static let kinds: [Kind] = [
        (Kind.application, 8), (.token, 4), (.form, 3), (.mobileFirst, 3), (.refresh, 3), (.signOn, 3), (.basic, 2),
        (.check, 2),
        (.composite, 2), (.digest, 2), (.double, 2), (.key, 2), (.offer, 2), (.portal, 2), (.checkWithCodes, 1),
        (.formWithCodes, 1), (.lockingCheck, 1), (.registry, 1), (.sessionID, 1), (.signed, 1), (.split, 1),
        (.visitor, 1),
    ].flatMap { [Kind](repeating: $0, count: $1) }
    /// Nodes share sessions that are not a header of each request, and no refresh token.
    static let shared: [Kind] = [.form, .token, .check, .formWithCodes, .formWithCodes]

    init(_ simulation: Simulation, of asked: Kind?) {
        self.simulation = simulation
        self.asked = asked
        focus = simulation.chance.oneIn(2) ? simulation.chance.pick(Self.kinds) : nil
    }

    /// Returns another server, of a kind by `chance`.
    mutating func makeServer(_ number: Int) -> SimulatedServer {
        let port = 8_001 + number
        let name = "c\(number)"
        let protection: any Protection
        let (simulation, servers) = (simulation, simulation.servers)
        func account(rides: Bool) -> Account { Account(name, ridesOnRequests: rides, in: simulation) }
        // The second one of two servers with one token endpoint, or with one provider: either alone is half of the matter.
        let endpoint = servers.lazy.compactMap { ($0.protection as? RefreshProtection)?.endpoint }.first
        var kind = focus ?? simulation.chance.pick(Self.kinds)
        if simulation.setting.nodes > 1 { kind = simulation.chance.pick(Self.shared) }
        if let asked { kind = asked }
        if servers.last?.protection is SignOnProtection, simulation.chance.oneIn(2) { kind = .signOn }
        if endpoint != nil, simulation.chance.oneIn(2) { kind = .refresh }
        // Other nodes that use codes report to one server.
        if kind == .checkWithCodes, servers.contains(where: \.protection.usesCodes) { kind = .check }
        switch kind {
        case .application: protection = ApplicationForm(account(rides: false))
        case .basic: protection = BasicProtection(account(rides: true))
        case .check: protection = CheckProtection(account(rides: false), manner: .counts)
        case .checkWithCodes:
            protection = CheckProtection(account(rides: false), manner: .counts, codes: OneTimeCodes())
        case .composite: protection = CompositeProtection(account(rides: false))
        case .digest: protection = DigestProtection(account(rides: true))
        case .double: protection = DoubleProtection(account(rides: true))
        case .form: protection = FormProtection(account(rides: false))
        case .formWithCodes: protection = FormProtection(account(rides: false), codes: OneTimeCodes())
        case .key: protection = KeyProtection(account(rides: true))
        case .lockingCheck: protection = CheckProtection(account(rides: false), manner: .locks)
        case .mobileFirst: protection = MobileFirstProtection(account(rides: false))
        case .offer: protection = OfferProtection(account(rides: true))
        case .portal: protection = PortalProtection(account(rides: false), port: port)
        case .refresh:
            protection = RefreshProtection(
                name, at: endpoint ?? RefreshEndpoint(account(rides: false), port: port))
        case .registry: protection = RegistryProtection(account(rides: false), port: port)
        case .sessionID: protection = SessionIDProtection(account(rides: false))
        case .signed: protection = SignedProtection(account(rides: false), port: port)
        case .signOn: protection = signOn(number, at: port)
        case .split: protection = SplitForm(account(rides: false), port: port)
        case .token: protection = TokenProtection(account(rides: false), port: port)
        case .visitor: protection = VisitorForm(account(rides: false), port: port)
        }
        return SimulatedServer("s\(number)", port: port, in: simulation, protection)
    }

    /// Returns the protection of another upstream of the provider, which is made for the first.
    private mutating func signOn(_ number: Int, at port: Int) -> SignOnProtection {
        if let provider = providers.first?.protection as? SignOnProvider {
            return SignOnProtection(provider, number: number, port: port)
        }
        let account = Account("c\(number)", ridesOnRequests: false, in: simulation)
        let provider = SignOnProvider(account)
        providers = [
            SimulatedServer("idp", port: 9_001, in: simulation, provider),
            SimulatedServer("old", port: 9_080, in: simulation, StrangeProvider(account)),
        ]
        return SignOnProtection(provider, number: number, port: port)
    }
}
