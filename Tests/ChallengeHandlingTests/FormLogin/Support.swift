// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

/// A portal with a form login, and the steps of a conversation with it.
enum Portal {
    static let origin = Origin(scheme: .https, host: "portal.example.com")
    static let key = LatchKey(origin: origin, challenge: "portal", credential: "ann")
    static let address = "https://portal.example.com/app/home"

    static func login(
        _ rules: GatewayRules = .jSecurityCheck, challenged: String? = address, base: String = address,
        proof: String? = nil
    ) throws -> GatewayLogin {
        GatewayLogin(
            rules, key: key, base: try #require(WebURL(base)), proof: try proof.map { try #require(WebURL($0)) },
            challenged: try challenged.map { try #require(WebURL($0)) })
    }

    /// Returns a rig that has the credential of these tests.
    static func rig(_ steps: [ScriptedStep]) -> LoginRig { LoginRig(steps, credentials: [.ann]) }

    /// Returns a step that fetches a page.
    static func get(
        _ path: String = "/app/home", _ status: Int = 200, _ body: String = "<p>Welcome</p>",
        set cookies: [String] = [], to location: String? = nil, sends cookie: String? = nil,
        _ place: SourceLocation = #_sourceLocation
    ) -> ScriptedStep {
        ScriptedStep(
            .get, "\(origin)\(path)", reply(status, body, cookies, location), location: place
        ) { $0.body == nil && $0.fields[.cookie] == cookie && $0.fields[.accept]?.hasPrefix("text/html,") == true }
    }

    /// Returns a step that submits a form.
    static func post(
        _ path: String = "/app/j_security_check", _ status: Int = 200, _ body: String = "",
        set cookies: [String] = [], to location: String? = nil, sends cookie: String? = "JSESSIONID=1",
        form: String? = "j_username=ann-u&j_password=pass%22word", _ place: SourceLocation = #_sourceLocation
    ) -> ScriptedStep {
        ScriptedStep(
            .post, "\(origin)\(path)", reply(status, body, cookies, location), location: place
        ) { $0.body?.revealText() == form && $0.fields[.cookie] == cookie }
    }

    private static func reply(
        _ status: Int, _ body: String, _ cookies: [String], _ location: String?
    ) -> Result<SideResponse, SideRequestError> {
        var fields: HTTPFields = [.contentType: "text/html;charset=UTF-8"]
        fields[values: .setCookie] = cookies
        fields[.location] = location
        return .success(SideResponse(status: status, fields: fields, body: Array(body.utf8)))
    }

    /// Returns a rig whose credential was accepted before, by the form of that path if one is given.
    static func acceptedRig(
        _ steps: [ScriptedStep], path: String? = nil, inputs: Set<String> = [], latches: LocalGate = LocalGate()
    ) async -> LoginRig {
        let form = path.map { AcceptedForm(origin: origin, path: $0, inputs: inputs) }
        await latches.accept(key, .ann, Acceptance(path: nil, at: LoginRig.now, form: form))
        return LoginRig(steps, credentials: [.ann], latches: latches)
    }

    static let form = #"<form method="POST" action="j_security_check"><input name="j_username"></form>"#
}

extension LoginRig {
    /// Returns the cookies that a session sends to the portal.
    func cookies(of session: Session, at address: String = Portal.address) throws -> String? {
        #expect(session.isVerified && session.fields.isEmpty)
        let url = try #require(WebURL(address))
        let value = session.cookies?.merged(with: [], for: url, now: LoginRig.now)
        return value.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Runs `login` twice: it must be rejected after one submission, and then send nothing.
    func expectRejection(
        _ login: any SessionLogin, _ code: LoginFailure.Code = .rejected, location: SourceLocation = #_sourceLocation
    ) async {
        #expect(await lose(login, location: location).code == code, sourceLocation: location)
        let sent = requests.sent.count
        #expect(await lose(login, location: location).code == .latched, sourceLocation: location)
        #expect(requests.sent.count == sent, sourceLocation: location)
        #expect(requests.sent.count { $0.method == .post } == 1, sourceLocation: location)
        #expect(latches.keys == [Portal.key], sourceLocation: location)
    }

    /// Runs `login`, whose outcome must be unknown: nothing latches.
    func expectUnknown(
        _ login: any SessionLogin, _ code: LoginFailure.Code = .failed, location: SourceLocation = #_sourceLocation
    ) async -> LoginFailure {
        let failure = await lose(login, location: location)
        #expect(failure.code == code && failure.isUnknown, sourceLocation: location)
        #expect(latches.all.isEmpty, sourceLocation: location)
        return failure
    }
}
