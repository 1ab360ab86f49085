// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The means that logins are made with besides the configuration, with all that they share and keep over a reload.
package final class LoginMaterial: Sendable {
    /// Computes digests.
    package let digests: any MessageDigests
    /// Gives out Kerberos tickets.
    package let tickets: any TicketOffice
    /// True if connections can be authenticated by NTLM.
    package let hasNTLM: Bool
    /// The handlers that the program brings along.
    let ownHandlers: any OwnHandlerSource
    /// Keys and refresh tokens.
    let tokens: TokenMaterial
    /// The addresses that the forms of login pages went to first.
    let provenForms = ProvenForms()
    private let clients = Mutex<[String: MobileFirstClient]>([:])

    /// The material of a process.
    package init(
        digests: any MessageDigests, keys: any SigningKeys, tickets: any TicketOffice, hasNTLM: Bool,
        ownHandlers: any OwnHandlerSource = NoOwnHandlers()
    ) {
        self.digests = digests
        self.tickets = tickets
        self.hasNTLM = hasNTLM
        self.ownHandlers = ownHandlers
        tokens = TokenMaterial(keys: keys)
    }

    /// The client of an upstream's MobileFirst server, one per upstream and, where callers are told apart, identity: the same one as
    /// before a reload, if nothing about it changed.
    func client(named name: String, identity: String, _ configuration: MobileFirstConfiguration) -> MobileFirstClient {
        clients.withLock { clients in
            let place = "\(name) \(identity)"
            if let known = clients[place], known.configuration == configuration { return known }
            let client = MobileFirstClient(
                name: name, identity: identity, configuration: configuration, keys: tokens.keys)
            clients[place] = client
            return client
        }
    }
}
