// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("The login of a gateway's own handler")
struct HandledGatewayTests {
    /// A page is a login page where it says so.
    private struct Handler: GatewayChallengeHandler {
        let gatewayName = "own"

        func canHandleResponse(_ response: ExaminedResponse) -> Bool { response.text == "log in" }

        func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
            challenge.isRepeated ? .cancel(reason: "wrong") : .submitLoginForm(url: "/in", parameters: ["pin": "1"])
        }
    }

    private func step(_ method: HTTPRequest.Method, _ path: String, _ text: String) -> ScriptedStep {
        ScriptedStep(method, "https://h\(path)", .success(SideResponse(status: 200, body: Array(text.utf8))))
    }

    /// A login for a request that met the page at `/app`, of an upstream at `/`.
    private func login() -> HandledGatewayLogin {
        let origin = Origin(scheme: .https, host: "h")
        let met = ExaminedResponse(
            status: 200, fields: [:], body: Array("log in".utf8), url: WebURL(origin: origin, path: "/app"))
        return HandledGatewayLogin(
            gateway: HandledGateway(Handler(), caller: DirectCaller()), met: met, origin: origin,
            base: WebURL(origin: origin, path: "/"), target: nil)
    }

    @Test("a page that only a caller chose does not reject a gateway's answer")
    func chosenByCaller() async {
        let gate = LocalGate()
        for _ in 0..<2 {
            let steps = [
                step(.get, "/", "news"), step(.get, "/app", "log in"), step(.post, "/in", "hello"),
                step(.get, "/app", "log in"),
            ]
            let failure = await LoginRig(steps, latches: gate).lose(login())
            #expect(failure.code == .failed && !failure.isCancelled)
        }
    }

    @Test("the upstream's own page after the form rejects a gateway's answer, which is not sent again")
    func configured() async {
        let gate = LocalGate()
        let page = step(.get, "/", "log in")
        let failure = await LoginRig([page, step(.post, "/in", "hello"), page], latches: gate).lose(login())
        #expect(failure.isCancelled)
        let second = await LoginRig([page], latches: gate).lose(login())
        #expect(second.code != .failed)
    }
}
