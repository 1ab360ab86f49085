// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// The gateway sample of MobileFirst 8.0: several rounds, a page that says "locked" with status 200, and a response that is not the gateway's.

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Samples

/// Handler of the demonstration's portal.
struct PortalHandler: GatewayChallengeHandler {
    let gatewayName = "portal"
    let user: String

    func canHandleResponse(_ response: ExaminedResponse) -> Bool { response.text.contains("pkmslogin.form") }

    func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        // A page that only mentions the form is not ours: it goes to the program as it came.
        guard challenge.response.text.contains("<form") else { return .submitSuccess }
        if challenge.isRepeated { return .cancel(reason: "The portal does not take the password.") }
        return .submitLoginForm(url: "/portal/pkmslogin.form", parameters: ["username": user, "password": "demo"])
    }

    func onSuccess(_ response: ExaminedResponse) async throws -> GatewayAnswer {
        if response.text.contains("locked") { return .cancel(reason: "The account of \(user) is locked.") }
        return .submitSuccess
    }

    func onFailure(_ response: ExaminedResponse) async throws -> GatewayAnswer {
        // The second round: the token of the first answer.
        guard response.status == 401, let token = response.text.split(separator: "token=").last else {
            return .cancel(reason: "The portal answered with \(response.status).")
        }
        return .submitLoginForm(url: "/portal/token", parameters: ["token": String(token.prefix { $0.isHexDigit })])
    }
}

let client = try ChallengeClient()
try client.registerChallengeHandler(PortalHandler(user: "ann"), at: "127.0.0.1:*/portal/*")
let news = try await client.send(to: "\(Sample.server)/portal/news").text(upTo: 10_000)
Sample.check(news.contains("The address of our login"), "a page that is not the gateway's passes")
let page = try await client.send(.post, to: "\(Sample.server)/portal/orders", body: .bytes(Array("one order".utf8)))
let body = try await page.text(upTo: 10_000)
Sample.check(page.status == .ok && body.contains("\"size\":9"), "two rounds, and the request is sent again as it was")
await client.shutdown()

let other = try ChallengeClient()
try other.registerChallengeHandler(PortalHandler(user: "bob"), at: "127.0.0.1:*/portal/*")
let locked = await Sample.failure { _ = try await other.send(to: "\(Sample.server)/portal/orders") }
Sample.check(locked?.detail == "The account of bob is locked.", "locked: \(locked?.detail ?? "served")")
await other.shutdown()
