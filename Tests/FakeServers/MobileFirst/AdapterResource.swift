// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A resource of an adapter, protected by a scope.
package struct AdapterResource: Sendable {
    /// The methods it answers; empty is any.
    package var methods: [String]
    /// Its path below `adapters/`, as `bank/balance`.
    package var path: String
    /// The scope elements that a token must hold, separated by spaces; none is any registered client.
    package var scope: String
    /// The resource itself, reached past all security.
    package var handle: @Sendable (FakeRequest) -> FakeResponse

    /// Creates a resource of that path and scope.
    package init(
        _ path: String, scope: String = "", methods: [String] = [],
        handle: @escaping @Sendable (FakeRequest) -> FakeResponse
    ) {
        self.methods = methods
        self.path = path
        self.scope = scope
        self.handle = handle
    }
}

extension MobileFirstState {
    /// Applies the resource filter (RFC 6750 §3): passes a request on to a resource, or answers with the missing scope.
    mutating func admit(
        _ call: MobileFirstCall, _ adapters: [AdapterResource], _ admitted: inout AdapterResource?,
        _ notes: inout MobileFirstNotes
    ) -> FakeResponse? {
        let candidates = adapters.filter { "adapters/" + $0.path == call.path }
        guard !candidates.isEmpty else { return refusal("NOT_FOUND", "No such resource.", status: 404) }
        guard let resource = candidates.first(where: { $0.methods.isEmpty || $0.methods.contains(call.request.method) })
        else {
            return FakeResponse(405, fields: [("Allow", candidates.flatMap(\.methods).joined(separator: ", "))])
        }
        guard let text = call.request.authorization("Bearer") else {
            return FakeResponse(401, fields: [("WWW-Authenticate", "Bearer")])
        }
        guard var token = tokens[text], token.expires > call.now,
            rules.tokenUses.map({ token.uses < $0 }) ?? true
        else {
            return invalidTokenResponse
        }
        guard Set(resource.scope.split(separator: " ").map(String.init)).isSubset(of: token.scope) else {
            return insufficientScope(
                (["RegisteredClient"] + resource.scope.split(separator: " ").map(String.init)).joined(separator: " "))
        }
        token.uses += 1
        tokens[text] = token
        admitted = resource
        return nil
    }
}
