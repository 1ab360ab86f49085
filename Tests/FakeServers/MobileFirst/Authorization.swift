// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension MobileFirstState {
    /// `az/v1/authorization`: a grant code by redirect, or what the redirect says to a browser.
    mutating func authorize(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        let fields = call.request.queryFields
        guard call.request.method == "GET" else { return refusal("BAD_REQUEST", "Only GET.", status: 405) }
        guard call.path == "az/v1/authorization" else {
            return .json(200, .object(fields.pairs.map { JSONMember($0.name, .string($0.value)) }))
        }
        guard fields.isWellFormed, let id = fields["client_id"], let redirect = fields["redirect_uri"],
            fields["response_type"] == "code"
        else {
            notes.violation("authorization: response_type=code, client_id or redirect_uri is missing")
            return refusal("BAD_REQUEST", "response_type=code, client_id, scope and redirect_uri are needed.")
        }
        guard let client = clients[id] else { return unknownClientResponse }
        guard isAllowed(redirect, client: id, basePath: call.basePath) else {
            notes.violation("authorization: redirect_uri is not the client's")
            return refusal("INVALID_REDIRECT_URI", "redirect_uri is not the client's.")
        }
        let scope = fields["scope"] ?? ""
        guard let checks = rules.checks(inScope: scope) else {
            return redirection(redirect, "error=invalid_scope&errorMsg=Unknown%20scope")
        }
        // A check may have lapsed since it was put by preauthorize.
        guard checks.allSatisfy({ client.checks[$0.name]?.isSuccess(for: $0, now: call.now) == true }) else {
            return redirection(redirect, "error=access_denied&errorMsg=Security%20checks%20not%20satisfied")
        }
        let code = String(UInt64.random(in: 1_000_000_000 ... .max))
        codes = codes.filter { $0.value.expires > call.now }
        codes[code] = Code(client: id, scope: scope, redirect: redirect, expires: call.now + 60_000)
        return redirection(redirect, "code=\(code)")
    }

    private func redirection(_ address: String, _ query: String) -> FakeResponse {
        FakeResponse(302, fields: [("Location", "\(address)?\(query)"), ("Cache-Control", "no-store")])
    }

    private func isAllowed(_ redirect: String, client: String, basePath: String) -> Bool {
        redirect == "http://mfpredirecturi" || redirect == "https://mfpredirecturi"
            || redirect.hasSuffix("\(basePath)/az/v1/authorization/redirect/\(client)")
    }
}
