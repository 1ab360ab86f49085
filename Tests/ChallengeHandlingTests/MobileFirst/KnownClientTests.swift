// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Clients of MobileFirst servers, over reloads")
struct KnownClientTests {
    private struct NoTickets: TicketProvider {
        func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
            throw TicketError(.unsupported, reason: "there is no GSS-API")
        }
    }

    @Test("a client is kept as long as a plan has it and its configuration is the same, and no longer")
    func lifetime() throws {
        let material = LoginMaterial(
            digests: NoDigests(), keys: ScriptedKeys(), messageKeys: EchoKeys(), tickets: NoTickets(), hasNTLM: false)
        let configuration = try Bank.configuration()
        var plan: MobileFirstClient? = material.client(named: "bank", identity: "ann", configuration)
        weak let former = plan
        // The next plan is made before the former one is gone.
        var next: MobileFirstClient? = material.client(named: "bank", identity: "ann", configuration)
        #expect(former === next)
        plan = nil
        #expect(former != nil)
        next = material.client(named: "bank", identity: "ann", try Bank.configuration(version: "2.0"))
        #expect(former == nil)
        #expect(material.client(named: "bank", identity: "bob", configuration) !== next)
        _ = plan
    }
}
